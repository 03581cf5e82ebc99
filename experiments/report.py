"""Report the scores of a finished run at each site.

  python -m experiments.report --run=runs/wine_sites --personalize_epochs=5

The scores of the global model on the test examples of each site are written to
<run>/sites. <run>/conformal.json contains the thresholds of the prediction
sets, from the calibration examples of all sites; bfl-tf predict uses them. Each
personalized model and its thresholds are in <run>/sites/models/<site>; --run of
bfl-tf predict accepts this directory. With --superlink, nodes evaluate the
model on their files and send only sums. Exit code 2: a flag or a file is wrong,
and nothing was written. Exit code 1: too few nodes replied, or the disk is
full.
"""

from collections.abc import Iterable

from absl import flags

from bfl_tf import metrics
from bfl_tf.analysis import (
  coefficients,
  loading,
  personalized,
  prediction_sets,
  report_files,
  reports,
  risk,
)
from experiments import command_line, finished

_ON_TEST = finished.calibrate_on_test()
_MIN_SITE_EXAMPLES = finished.min_site_examples()
flags.adopt_module_key_flags(finished)
_EPOCHS = flags.DEFINE_integer(
  'personalize_epochs',
  0,
  'Number of epochs in which each site trains a personalized model from the '
  'global model; 0: no personalized models.',
  lower_bound=0,
  upper_bound=1_000_000,
)
_PROJECTION = flags.DEFINE_enum(
  'projection',
  '',
  ['', *personalized.RULES],
  'Pooling rule that combines the global posterior with the posterior of each '
  'site, with --personalize_epochs; empty: none (docs/personalization.md).',
)
_SETS = flags.DEFINE_enum(
  'sets',
  'lac',
  list(metrics.SET_SCORES),
  'Score of the prediction sets. lac: smallest sets. aps: more even coverage '
  'of hard and easy examples. raps: aps with a penalty on large sets '
  '(docs/your_data.md).',
)
_SETS_BY = flags.DEFINE_enum(
  'sets_by',
  '',
  ['', *prediction_sets.GROUPS],
  'Groups with thresholds of their own: the coverage guarantee then holds for '
  'each site or for each class. Empty: class for two classes if one has less '
  'than 20 % of the calibration examples, otherwise all.',
)
_EVENT = flags.DEFINE_string(
  'event',
  '',
  'Class of which the report shows the risk, for two classes; empty: the rarer '
  'class of the calibration examples.',
)
_THRESHOLD = flags.DEFINE_float(
  'risk_threshold',
  0.0,
  'Risk from which an example counts as positive; 0: the fraction of events in '
  'the calibration examples.',
  lower_bound=0.0,
  upper_bound=0.999,
)
_RECALIBRATE = flags.DEFINE_enum(
  'recalibrate',
  '',
  ['', *risk.RECALIBRATIONS],
  'Recalibration of the risk, fitted on the calibration examples of all sites '
  'and of each site: slope of the log odds (temperature), or slope and '
  'intercept (platt). bfl-tf predict then uses it.',
)
_CALIBRATED = finished.calibrated('Prediction sets are then left out.')
_SUPERLINK = flags.DEFINE_string(
  'superlink',
  '',
  "Connection in Flower's config.toml whose nodes evaluate the model; --run is "
  "then a path on the server's machine.",
)
_TIMEOUT = flags.DEFINE_float(
  'answer_timeout',
  0.0,
  'Time limit in seconds for the reply of a node, with --superlink; 0 for the '
  "run's --client_timeout.",
  lower_bound=0.0,
)


def main() -> None:
  """Scores, writes tables and plots, and prints the tables."""
  path = finished.path()
  if _PROJECTION.value and not _EPOCHS.value:
    command_line.fail(
      '--projection needs the posterior of each site: set --personalize_epochs.'
    )
  if _RECALIBRATE.value and _CALIBRATED.value:
    command_line.fail(
      '--recalibrate and --calibrated are two calibrations: remove one.'
    )
  choice = risk.Risk(_EVENT.value, _THRESHOLD.value, _RECALIBRATE.value)
  command_line.terminable()
  if _SUPERLINK.value:
    return _ask_nodes(path, choice)
  with finished.locked(path):
    _report(path, choice)


def _report(path, choice):
  run = loading.load_run(
    path, _ON_TEST.value, _SETS.value, _MIN_SITE_EXAMPLES.value, _SETS_BY.value
  )
  has_held = run.calibration is not None
  risk.check(choice, run.trained.task.classes, has_held)
  for note in run.dataset.notes:
    print(note)
  own: Iterable[personalized.PersonalizedModel] = ()
  if _EPOCHS.value:
    state = run.trained.state
    own = personalized.train(run, state, _EPOCHS.value, _PROJECTION.value)
    own = personalized.save(path, run.trained, own, _EPOCHS.value)
  report = reports.report(run, own, _CALIBRATED.value, choice)
  report_files.write(path, report)
  for line in report_files.lines(path, report):
    print(line)
  for line in coefficients.write(path, run.trained):
    print(line)
  if run.trained.has_personal_models:
    parts = ', '.join(run.trained.config.client_parts)
    print(
      f'columns personal_*: models that the clients keep (--client_parts='
      f'{parts}); bfl-tf predict --site uses them'
    )
  if _EPOCHS.value:
    print(f"sites' own models in {personalized.models_folder(path)}")


def _ask_nodes(path, choice):
  ours = (_EPOCHS, _ON_TEST, _MIN_SITE_EXAMPLES, _CALIBRATED)
  if any(flag.value for flag in ours):
    command_line.fail(
      '--superlink: nodes send scores only: remove --personalize_epochs, '
      '--calibrate_on_test, --min_site_examples and --calibrated.'
    )
  absolute = command_line.on_server('--run', path)
  flower = command_line.flower('--superlink')
  with command_line.watching(_SUPERLINK.value):
    flower.evaluate_on_sites(
      absolute, _SUPERLINK.value, _TIMEOUT.value, _SETS.value, _SETS_BY.value,
      choice,
    )  # fmt: skip


if __name__ == '__main__':
  command_line.main(main)
