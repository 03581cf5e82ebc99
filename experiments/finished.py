"""Flags of binaries that analyze a finished run."""

from collections.abc import Collection
import contextlib
import os
import pathlib

from absl import flags

from bfl_tf import analysis, run_files
from bfl_tf.runs import directory
from experiments import command_line

_RUN = flags.DEFINE_string('run', None, 'Directory of a finished run.')


def path() -> pathlib.Path:
  """Returns the run's directory; exits if `--run` is missing."""
  if not _RUN.value:
    command_line.fail('--run is missing: name the --output_dir of a run.')
  return pathlib.Path(_RUN.value)


def site() -> flags.FlagHolder[str]:
  """Defines the client whose personal model is used."""
  return flags.DEFINE_string(
    'site',
    '',
    'Client whose personal model is used, if the method has personal models; '
    'empty: the global model. bfl-tf predict also uses the thresholds (report '
    '--sets_by=site) and the recalibration of this site.',
  )


def model(
  path: pathlib.Path, site: str, reported: Collection[str] = ()
) -> analysis.Trained:
  """Returns the global model of a run, or a client's personal model.

  Args:
    reported: Sites that a report knows; without personal models, they have the
      global model.
  """
  trained = analysis.load(path)
  known = reported if reported and not trained.has_personal_models else ()
  if not site or site in known:
    trained.check_usable()
    return trained
  if known:
    raise ValueError(
      f'--site={site} is not in the report: choose {" or ".join(known)}.'
    )
  try:
    return trained.personal(site)
  except ValueError as error:
    raise ValueError(f'--site={site}: {error}') from error


def locked(path: pathlib.Path) -> contextlib.AbstractContextManager[None]:
  """Locks a run, so that it cannot change while it is analyzed."""
  if not (path / run_files.FLAGS).exists():
    return contextlib.nullcontext()  # `load` reports the error.
  return directory.RunDirectory(path).locked('run')


def calibrate_on_test() -> flags.FlagHolder[float]:
  """Defines the fraction of test examples that are used for calibration."""
  return flags.DEFINE_float(
    'calibrate_on_test',
    0.0,
    'Fraction of the test examples that are used for calibration, for a run '
    'without calibration examples; the other test examples are scored.',
    lower_bound=0.0,
    upper_bound=0.9,
  )


def calibrated(more: str) -> flags.FlagHolder[bool]:
  """Defines the flag that applies the fitted temperature of a run."""
  return flags.DEFINE_boolean(
    'calibrated',
    False,
    'Apply the temperature that the run fitted on its calibration examples '
    '(--calibration_fraction), or else on its validation examples. '
    f'{more}',
  )


def min_site_examples() -> flags.FlagHolder[int]:
  """Defines the minimum number of test examples of a site."""
  return flags.DEFINE_integer(
    'min_site_examples',
    0,
    'Minimum number of test examples of a site; smaller sites are left out and '
    'listed.',
    lower_bound=0,
  )


def num_mc_samples() -> flags.FlagHolder[int | None]:
  """Defines the number of forward passes of a stochastic model."""
  return flags.DEFINE_integer(
    'num_mc_samples',
    None,
    'Number of Monte Carlo samples of a stochastic model; empty: the number in '
    "the run's last evaluation.",
    lower_bound=1,
    upper_bound=1_000_000,
  )


def output(name: str, suffix: str, *inputs: str) -> pathlib.Path:
  """Returns the path of an `--output`, which must not replace a run's file.

  Args:
    suffix: Required suffix; any if empty.
    *inputs: Paths that are read.
  """
  wanted, flag = pathlib.Path(name), f'--output={name}'
  if wanted.suffix != suffix and suffix:
    raise ValueError(f'{flag} must end in {suffix}.')
  if wanted.exists() and not wanted.is_file():
    raise ValueError(f'{flag} cannot be written: it is not a file.')
  for each in inputs:
    if wanted.exists() and os.path.exists(each) and wanted.samefile(each):
      raise ValueError(f'{flag} is also an input: choose another file.')
  if (
    _RUN.value
    and wanted.exists()
    and path().resolve() in wanted.resolve().parents
  ):
    raise ValueError(f"{flag} is in the run's directory: choose another file.")
  return wanted
