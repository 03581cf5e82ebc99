"""For whom a finished run's model fails, and how far its sets can be trusted.

  python -m experiments.sites --run=runs/wine_sites --personalise_epochs=5

The global model on each site's own test share, in <run>/sites; and a threshold
from all sites' calibration shares, in <run>/conformal.json, by which
experiments.predict adds sets. Exit code 2: something is wrong, and nothing was
written.
"""

from collections.abc import Iterable
import json
import pathlib
from typing import Any

from absl import flags

from bfl_tf import plots
from bfl_tf.federation import checkpoints, promises, sites
from experiments import finished
from experiments import flags as config_flags
from experiments import rows as rows_lib

flags.adopt_module_key_flags(finished)
_EPOCHS = flags.DEFINE_integer(
  'personalise_epochs',
  0,
  'Epochs that each site trains on from the global model; 0: none.',
  lower_bound=0,
)


def main() -> None:
  """Scores, writes tables and plots, and prints the tables."""
  path = finished.path()
  try:
    run = finished.reopen()
    personalised: Iterable[sites.Personalised] = ()
    if _EPOCHS.value:
      state = checkpoints.restore(path / 'checkpoints')
      personalised = sites.personalise(run, state, _EPOCHS.value)
    report = sites.report(run, personalised)
  except ValueError as error:
    config_flags.fail(error)
  write(path, report)
  for rows in (report.sites, report.summary, report.classes):
    if rows:
      print(f'{rows_lib.table(rows)}\n')
  say(report)
  print(f'tables and plots in {path / "sites"}')


def write(path: pathlib.Path, report: sites.Report) -> None:
  """Writes `sites/` below a run, and its `conformal.json`."""
  folder = path / 'sites'
  folder.mkdir(exist_ok=True)
  # Of an earlier question, which this one does not ask.
  for old in (*folder.glob('*.csv'), *folder.glob('*.png')):
    old.unlink()
  (path / promises.FILE).unlink(missing_ok=True)
  for name in ('sites', 'classes', 'summary'):
    rows = getattr(report, name)
    if rows:
      rows_lib.write_csv(folder / f'{name}.csv', rows)
  if report.promise:
    rows_lib.write_text(path / promises.FILE, report.promise.to_json())
  scores = json.dumps(sites.flat(report), indent=2)
  rows_lib.write_text(folder / 'scores.json', scores + '\n')
  for name, figure in figures(report).items():
    figure.savefig(folder / f'{name}.png')


def figures(report: sites.Report) -> dict[str, Any]:
  """Draws scores of sites and of classes."""
  levels = report.promise.levels if report.promise else ()
  targets = {f'Coverage of {level:g}': level for level in levels}
  drawn = {}
  if report.sites:
    names = {'Accuracy': 'accuracy', 'Personalised': 'personalised_accuracy'}
    drawn['sites'] = plots.dots(
      _by_name(report.sites, 'site', names),
      'Accuracy (fraction of the test share)',
      'The global model on each site',
    )
  names = {'Recall': 'recall'} | {
    name: f'coverage_{level:g}' for name, level in targets.items()
  }
  drawn['classes'] = plots.dots(
    _by_name(report.classes, 'class', names),
    'Fraction of the class',
    'The global model on each class',
    targets,
  )
  if levels and report.sites:
    del names['Recall']
    drawn['coverage'] = plots.dots(
      _by_name(report.sites, 'site', names),
      'Coverage (fraction of the test share)',
      'Sets that hold the label, by site',
      targets,
    )
  return drawn


def say(report: sites.Report) -> None:
  """Says what is not there and why, and what was promised."""
  if not report.sites:
    print('no sites: of a .csv --client_column names them, of an .npz '
          'client_ids and client_ids_test')  # fmt: skip
  promise = report.promise
  if promise is None:
    print('no sets: give the run a --calibration_fraction, or '
          '--calibrate_on_test=0.5 here')  # fmt: skip
    return
  for level, limit in zip(promise.levels, promise.thresholds, strict=True):
    print(
      f'sets of {level:g}: every class of probability {1 - limit:.3f} or more, '
      f'from {promise.num_examples} calibration examples'
      + ('' if promise.is_enough(level) else ': too few, so every class')
    )


def _by_name(rows, first, names):
  found = {
    str(row[first]): {
      shown: row[column]
      for shown, column in names.items()
      if row.get(column) is not None
    }
    for row in rows
  }
  return {name: scores for name, scores in found.items() if scores}


if __name__ == '__main__':
  config_flags.main(main)
