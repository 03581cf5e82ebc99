"""The finished run that a binary asks more of, by its flags."""

import pathlib

from absl import flags

from bfl_tf.trained import reopened
from experiments import flags as config_flags

_RUN = flags.DEFINE_string('run', None, 'The --output_dir of a finished run.')
_ON_TEST = flags.DEFINE_float(
  'calibrate_on_test',
  0.0,
  'Of a run without a calibration share: the fraction of the test examples to '
  'calibrate on instead; the others are scored.',
  lower_bound=0.0,
  upper_bound=0.9,
)


def path() -> pathlib.Path:
  """Returns the run's directory; ends the program where none is named."""
  if not _RUN.value:
    config_flags.fail('--run is missing: name the --output_dir of a run.')
  return pathlib.Path(_RUN.value)


def reopen() -> reopened.Reopened:
  """Loads the run and its data.

  Raises:
    ValueError: as of `reopened.reopen`.
  """
  return reopened.reopen(path(), _ON_TEST.value)


def calibrates_on_test() -> bool:
  """Whether test examples are to stand in for a calibration share."""
  return bool(_ON_TEST.value)
