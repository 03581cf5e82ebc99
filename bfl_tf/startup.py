"""TensorFlow starts quietly: what a person sees first should be our line."""

import contextlib
import os
import sys


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


if 'tensorflow' not in sys.modules:
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  # Six lines of TensorFlow's, and the failure of its search for a GPU.
  with _quiet():
    import tensorflow as tf

    tf.config.list_physical_devices()
