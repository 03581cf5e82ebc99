"""Test session with two logical CPUs of one thread each."""

import gc
import os
import pathlib
import signal

# Background jobs ignore Ctrl-C, and their child processes would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# scikit-learn would start a process to count cores.
os.environ.setdefault('LOKY_MAX_CPU_COUNT', '1')
_SHARED = pathlib.Path(__file__).parents[2] / 'shared' / 'tensorflow_datasets'
if _SHARED.is_dir():
  os.environ.setdefault('TFDS_DATA_DIR', str(_SHARED))


def pytest_configure(config):
  """Starts TensorFlow in the processes that run tests."""
  if config.getoption('numprocesses', 0) and not hasattr(config, 'workerinput'):
    return
  from absl import flags
  import hypothesis
  import tensorflow as tf

  from bfl_tf import training

  # Tracing creates many objects. By default, collecting garbage takes a tenth
  # of the time of the tests.
  gc.set_threshold(100_000, 50, 100)
  training.configure(2)
  # This starts TensorFlow, so --num_workers cannot change the devices any more.
  assert len(tf.config.list_logical_devices('CPU')) == 2
  flags.FLAGS.mark_as_parsed()
  hypothesis.settings.register_profile(
    'deterministic', derandomize=True, deadline=None, max_examples=50
  )
  hypothesis.settings.load_profile('deterministic')


def pytest_collection_finish():
  """Excludes all imported objects from garbage collection."""
  gc.freeze()


def pytest_xdist_auto_num_workers(config):
  """Returns one process per core, at most eight, or none for a single file.

  More processes would spend most of their time on their start.
  """
  if len(config.args) == 1 and '.py' in config.args[0]:
    return 0
  return min(8, len(os.sched_getaffinity(0)))
