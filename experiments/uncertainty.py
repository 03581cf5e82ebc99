"""Evaluate out-of-distribution detection and calibration of a finished run.

  python -m experiments.uncertainty --run=runs/mnist --far=fashion_mnist

The results on the test examples are written to <run>/uncertainty:
out-of-distribution detection by entropy, aleatoric and epistemic uncertainty;
selective prediction; calibration before and after temperature scaling;
corrupted images. For numeric labels, a factor on the predictive standard
deviation replaces the temperature, and images are not corrupted. Images of
other sizes are resized. The test split of a TFDS data set is used; NAME@SPLIT
names another split. Exit code 2: a flag or a file is wrong, and nothing was
written. Exit code 1: the disk is full.
"""

import json

from absl import flags

from bfl_tf import data, files, plots, run_files
from bfl_tf.analysis import loading, uncertainty
from bfl_tf.runs import tables
from experiments import command_line, finished

_ON_TEST = finished.calibrate_on_test()
_MIN_SITE_EXAMPLES = finished.min_site_examples()
_SAMPLES = finished.num_mc_samples()
flags.adopt_module_key_flags(finished)
_NEAR = flags.DEFINE_list(
  'near', [],
  'Data sets similar to the training data, such as cifar100 for CIFAR-10.',
)  # fmt: skip
_FAR = flags.DEFINE_list(
  'far', [],
  'Data sets unlike the training data, such as mnist for CIFAR-10.',
)  # fmt: skip
_EXAMPLES = flags.DEFINE_integer(
  'num_examples',
  0,
  'Maximum number of examples per data set; 0 for all.',
  lower_bound=0,
)


def main() -> None:
  """Evaluates, writes tables and plots, and prints the tables."""
  path = finished.path()
  with finished.locked(path):
    _evaluate(path)


def _evaluate(path):
  run = loading.load_run(
    path, _ON_TEST.value, min_site_examples=_MIN_SITE_EXAMPLES.value
  )
  evaluated = uncertainty.evaluate(
    run,
    list(others(run.dataset)),
    num_samples=_SAMPLES.value,
    num_examples=_EXAMPLES.value,
  )
  for remark in evaluated.remarks:
    print(remark)
  for name, rows in evaluated.tables.items():
    if rows and name != 'corruptions':
      print(f'{tables.table(rows)}\n')
  found = evaluated.tables
  with tables.cleared(path / run_files.UNCERTAINTY) as folder:
    for name, rows in found.items():
      if rows:
        tables.write_csv(folder / f'{name}.csv', rows)
    for name, figure in figures(found).items():
      figure.savefig(folder / f'{name}.png')
    text = json.dumps(uncertainty.scores_by_name(found), indent=2)
    files.write_text(folder / run_files.SCORES, f'{text}\n')
  print(f'results in {path / run_files.UNCERTAINTY}')


def others(dataset: data.Dataset):
  """Yields the data sets of the flags."""
  seen: set[tuple[str, str]] = set()
  for flag in (_NEAR, _FAR):
    for text in flag.value:
      other = uncertainty.other(flag.name, text, dataset, _EXAMPLES.value)
      if other[:2] in seen:
        raise ValueError(
          f'--{flag.name}={text}: another data set has the name {other.name} '
          'too: rename one, or evaluate one at a time.'
        )
      seen.add(other[:2])
      yield other


def figures(found):
  """Returns figures of the tables, by name."""
  drawn = {}
  if found['detection']:
    rows: dict[str, dict[str, float]] = {}
    for row in found['detection']:
      name = f'{row["set"]} ({row["distance"]})'
      shown = row['measure'].replace('_', ' ').capitalize()
      rows.setdefault(name, {})[shown] = row['auroc']
    drawn['detection'] = plots.dots(
      rows,
      'AUROC (0.5: no detection)',
      'Detection of out-of-distribution inputs',
    )
  if found['corruptions']:
    drawn['corruptions'] = plots.corruption(found['corruptions'])
  return drawn


if __name__ == '__main__':
  command_line.main(main)
