"""Predicts with a finished run: a row of the output for each of the input.

  python -m experiments.predict --run=runs/wine_sites \
    --input=configs/wine_sites/new.csv --output=predictions.csv

A .csv is read by the names of its columns; an .npz has x. Exit code 2: a flag,
a file or a cell is wrong, and nothing was written.
"""

from collections.abc import Iterator
import csv
import shlex

from absl import flags
import numpy as np

from bfl_tf import files
from bfl_tf import trained as trained_lib
from bfl_tf.datasets import csv_files, encoding, names, npz
from bfl_tf.runs import directory
from bfl_tf.trained import promises
from experiments import finished
from experiments import flags as config_flags

_SAMPLES = finished.num_mc_samples()
flags.adopt_module_key_flags(finished)
_INPUT = flags.DEFINE_string('input', None, 'A .csv, or an .npz with x.')
_OUTPUT = flags.DEFINE_string('output', None, 'The .csv to write.')

_COLUMNS = (
  'class',
  'probability',
  'normalized_entropy',
  'aleatoric',
  'epistemic',
)
_ARRAYS = ('x', 'x_test')


def main() -> None:
  """Writes the predictions and says how many there are."""
  run = finished.path()
  for flag in (_INPUT, _OUTPUT):
    if not flag.value:
      config_flags.fail(f'--{flag.name} is missing: give --input, --output.')
  path = finished.output(_OUTPUT.value, '', _INPUT.value)
  trained = trained_lib.load(run)
  promise = _promise(run, trained)
  count = _write(trained, promise, path)
  print(f'{count} predictions in {_OUTPUT.value}')


def _promise(run, trained):
  """Returns what sets are made by; says which are none, or every class."""
  promise = promises.read(run)
  if promise is None:
    command = f'python -m experiments.sites --run={shlex.quote(str(run))}'
    if not trained.config.calibration_fraction:
      command += ' --calibrate_on_test=0.5'
    makes_them = f'{command} makes them'
    if directory.is_sites_own(run):
      makes_them = f'{directory.MADE_ANEW}, with sets of a calibration share'
    print(f'no sets: {makes_them}')
    return None
  if trained.num_samples(_SAMPLES.value) != promise.num_samples:
    print(
      'no sets: they hold for --num_mc_samples='
      f'{promise.num_samples}, which they were calibrated with'
    )
    return None
  for level in promise.levels:
    if not promise.is_enough(level):
      print(
        f'set_{level:g} is every class: {promise.num_examples} calibration '
        'examples are too few'
      )
  return promise


def _write(trained, promise, path):
  """Writes all rows beside the file, then moves them over it."""
  if not path.parent.is_dir():
    raise ValueError(f'--output={path} cannot be written: name a file.')
  x = _examples(trained.task)
  try:
    with files.replacing(path) as new, new.open('w', newline='') as file:
      writer = csv.writer(file, lineterminator='\n')
      sets = [f'set_{level:g}' for level in promise.levels] if promise else []
      writer.writerow([*_COLUMNS, *sets])
      writer.writerows(_rows(trained, promise, x))
  except OSError as error:
    raise ValueError(f'--output={path} cannot be written: {error}.') from error
  return len(x)


def _rows(trained, promise, x) -> Iterator[list]:
  classes = np.array(trained.task.classes)
  try:
    said = trained.predict(x, _SAMPLES.value)
  except ValueError as error:
    raise ValueError(f'--input={_INPUT.value}: {error}') from error
  columns = [
    classes[said.probs.argmax(-1)],
    *(
      [f'{value:.6g}' for value in values]
      for values in (said.probs.max(-1), *said[1:])
    ),
  ]
  if promise:
    for sets in promise.sets(said.probs):
      columns.append(['|'.join(classes[each]) for each in sets])
  yield from zip(*columns)


def _examples(task) -> np.ndarray:
  path, where = _INPUT.value, f'--input={_INPUT.value}'
  kind = names.kind(path)
  if kind == 'npz':
    return npz.inputs('input', path, _ARRAYS)
  if kind != 'csv':
    raise ValueError(f'{where} must be a .csv or an .npz with x.')
  x = csv_files.rows_like(path, task.features, where)
  used = encoding.columns(task.features)
  header = csv_files.CsvFile(where, path).header
  unused = [name for name in header if name not in used]
  if unused:
    print(f'not used: {", ".join(unused)}')
  return x


if __name__ == '__main__':
  config_flags.main(main)
