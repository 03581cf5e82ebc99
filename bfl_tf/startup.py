"""Lazy imports of TensorFlow, TFP and tf-keras.

All modules import them from here. Flags and help texts then do not need
TensorFlow, whose import takes seconds.
"""

import contextlib
import functools
import importlib
import os
import types
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
  import tensorflow as tf
  import tensorflow_probability as tfp
  from tensorflow_probability import distributions as tfd
  import tf_keras


@contextlib.contextmanager
def _quiet():
  """Discards output of native code to stderr."""
  stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
  os.dup2(nowhere, 2)
  try:
    yield
  finally:
    os.dup2(stderr, 2)
    os.close(stderr)
    os.close(nowhere)


@functools.cache
def start_tensorflow() -> None:
  """Imports TensorFlow without its log lines about CPUs and GPUs."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  with _quiet():
    importlib.import_module('tensorflow').config.list_physical_devices()


def import_all() -> None:
  """Imports all lazy modules.

  Call it before a thread starts processes: Python can deadlock if one thread
  forks while another imports.
  """
  start_tensorflow()
  for name in _MODULES:
    importlib.import_module(name)


class LazyModule(types.ModuleType):
  """A module that is imported when one of its attributes is first used."""

  def __getattr__(self, name: str) -> Any:
    start_tensorflow()
    value = getattr(importlib.import_module(self.__name__), name)
    setattr(self, name, value)
    return value


_MODULES = (
  'tensorflow',
  'tensorflow_probability.python.distributions',
  'tensorflow_probability',
  'tf_keras',
)
if not TYPE_CHECKING:
  tf, tfd, tfp, tf_keras = map(LazyModule, _MODULES)
