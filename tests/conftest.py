"""Two logical CPUs with one thread each, as every run on a CPU has."""

import os
import pathlib
import signal

# Where tests are started in the background, Ctrl-C is ignored, and processes
# that they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# scikit-learn would start a process to count cores.
os.environ.setdefault('LOKY_MAX_CPU_COUNT', '1')
_SHARED = pathlib.Path(__file__).parents[2] / 'shared' / 'tensorflow_datasets'
if _SHARED.is_dir():
  os.environ.setdefault('TFDS_DATA_DIR', str(_SHARED))

from absl import flags  # noqa: E402
import hypothesis  # noqa: E402
import tensorflow as tf  # noqa: E402

from bfl_tf import training  # noqa: E402

training.configure(2)
# TensorFlow starts: no run's --num_workers makes another number of devices.
assert len(tf.config.list_logical_devices('CPU')) == 2
flags.FLAGS.mark_as_parsed()
hypothesis.settings.register_profile(
  'deterministic', derandomize=True, deadline=None, max_examples=50
)
hypothesis.settings.load_profile('deterministic')


def pytest_xdist_auto_num_workers(config):
  """A process a core; more than eight would start longer than they run.

  What takes one file takes one process: it needs no other.
  """
  if len(config.args) == 1 and '.py' in config.args[0]:
    return 0
  return min(8, len(os.sched_getaffinity(0)))
