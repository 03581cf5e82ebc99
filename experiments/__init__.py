"""Binaries: thin, on absl flags. TensorFlow starts quietly here."""

import contextlib
import os


@contextlib.contextmanager
def _quiet():
  """Drops what native code writes to stderr."""
  stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
  os.dup2(nowhere, 2)
  try:
    yield
  finally:
    os.dup2(stderr, 2)
    os.close(stderr)
    os.close(nowhere)


os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# What a user sees first should be our line, not six of TensorFlow's and the
# failure of its search for a GPU.
with _quiet():
  import tensorflow as tf

  tf.config.list_physical_devices()
