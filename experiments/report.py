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
  projection,
  report_files,
  reports,
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
  ['', *projection.RULES],
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
  command_line.terminable()
  if _SUPERLINK.value:
    return _ask_nodes(path)
  with finished.locked(path):
    _report(path)


def _report(path):
  run = loading.load_run(
    path, _ON_TEST.value, _SETS.value, _MIN_SITE_EXAMPLES.value
  )
  for note in run.dataset.notes:
    print(note)
  own: Iterable[personalized.Personalized] = ()
  if _EPOCHS.value:
    state = run.trained.state
    own = personalized.train(run, state, _EPOCHS.value, _PROJECTION.value)
    own = personalized.save(path, run.trained, own, _EPOCHS.value)
  report = reports.report(run, own, _CALIBRATED.value)
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


def _ask_nodes(path):
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
      absolute, _SUPERLINK.value, _TIMEOUT.value, _SETS.value
    )


if __name__ == '__main__':
  command_line.main(main)
