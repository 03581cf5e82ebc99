"""Predict the rows of a file with a finished run.

  python -m experiments.predict --run=runs/wine_sites \\
    --input=configs/wine_sites/new.csv --output=predictions.csv

The output has one row for each row of the input. Columns of a .csv file are
matched by name; an .npz file must contain x. Exit code 2: a flag, a file or a
cell is wrong, and nothing was written.
"""

from collections.abc import Iterator, Sequence
import csv
import dataclasses
import pathlib
import shlex

from absl import flags
import numpy as np

from bfl_tf import data, files
from bfl_tf.analysis import prediction_sets
from bfl_tf.config import flagfile
from bfl_tf.config.config import FIELDS
from bfl_tf.data import csv_files, encoding, names, npz
from bfl_tf.runs import directory
from experiments import command_line, finished

_SAMPLES = finished.num_mc_samples()
_CALIBRATED = finished.calibrated(
  'Prediction sets do not change: they are calibrated in another way.'
)
flags.adopt_module_key_flags(finished)
_INPUT = flags.DEFINE_string(
  'input', None, 'Rows to predict: a .csv file, or an .npz file with x.'
)
_OUTPUT = flags.DEFINE_string('output', None, 'Path of the .csv file to write.')
_KEPT = flags.DEFINE_list(
  'keep_columns', [], 'Columns of the .csv input to copy, such as identifiers.'
)
_SITE = finished.site()
# The notation of the input, by default that of the run.
_FORMAT = {name: FIELDS[name] for name in data.FORMAT}
flagfile.define_fields(flags.FLAGS, _FORMAT)
flags.adopt_module_key_flags(flagfile)
_ARRAYS = ('x', 'x_test')
# Number of rows whose texts are in memory.
_CHUNK = 10_000


def main() -> None:
  """Writes the predictions and prints their number."""
  run = finished.path()
  for flag in (_INPUT, _OUTPUT):
    if not flag.value:
      command_line.fail(f'--{flag.name} is missing: name a file.')
  path = finished.output(_OUTPUT.value, '', _INPUT.value)
  trained = finished.model(run, _SITE.value)
  if not path.parent.is_dir():
    raise ValueError(f'--output={path}: the folder {path.parent} is missing.')
  x, kept = _examples(trained)
  sets = _read_sets(run, trained)
  prediction = _predict(trained, x)
  far = 0

  def chunks() -> Iterator[dict[str, Sequence]]:
    nonlocal far
    for start in range(0, len(x), _CHUNK):
      rows = slice(start, start + _CHUNK)
      part = type(prediction)(*(values[rows] for values in prediction))
      found = _columns(trained, sets, part, x[rows])
      for name in found.keys() & kept.keys():
        raise ValueError(
          f'--keep_columns={name}: the output already has this column.'
        )
      far += sum(found['out_of_range'])
      yield {name: of[rows] for name, of in kept.items()} | found

  _write(path, chunks())
  if far:
    remark = ', and their sets contain every label' if sets else ''
    print(
      f'rows out of range: {far}; a number in each is more than 10 standard '
      f'deviations from its training mean{remark}'
    )
  print(f'{len(x)} predictions in {_OUTPUT.value}')


def _read_sets(run, trained):
  """Loads the prediction sets; reports if they are missing or trivial."""
  if _SITE.value and not trained.needs_site:
    print(
      'The output has no prediction sets: they are calibrated for the global '
      'model'
    )
    return None
  sets = prediction_sets.read(run)
  if sets is None:
    command = f'bfl-tf report --run={shlex.quote(str(run))}'
    if not trained.config.calibration_fraction:
      command += ' --calibrate_on_test=0.5'
    remedy = f'to compute them, run: {command}'
    if directory.is_sites_own(run):
      remedy = 'the site has no calibration examples'
    print(f'The output has no prediction sets: {remedy}')
    return None
  samples = _SAMPLES.value
  same = trained.num_samples(samples) == sets.num_samples
  if not same:
    print(
      'The output has no prediction sets: they were calibrated for '
      'predictions without --num_mc_samples.'
    )
    return None
  for level in sets.levels:
    if not sets.is_enough(level):
      what = f'set_{level:g} contains every class'
      if trained.task.is_numeric:
        what = f'guaranteed intervals of level {level:g} are unbounded'
      print(f'{what}: {sets.num_examples} calibration examples are too few')
  return sets


def _write(path, chunks):
  """Writes a temporary file and renames it."""
  try:
    with (
      files.replacing(path) as new,
      new.open('w', newline='', encoding='utf-8') as file,
    ):
      writer = csv.writer(file, lineterminator='\n')
      for number, columns in enumerate(chunks):
        if not number:
          writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
  except OSError as error:
    raise ValueError(f'--output={path} cannot be written: {error}.') from error


def _predict(trained, x):
  try:
    return trained.predict(x, _SAMPLES.value)
  except ValueError as error:
    raise ValueError(f'--input={_INPUT.value}: {error}') from error


def _columns(trained, sets, prediction, x) -> dict[str, Sequence]:
  """Returns the columns of the output."""
  classes, raw = np.array(trained.task.classes), prediction
  far = trained.is_out_of_range(x)
  if _CALIBRATED.value:
    prediction = trained.calibrated(prediction)
  if trained.task.is_numeric:
    low, high = prediction.interval(0.9)
    columns = {
      'prediction': prediction.mean,
      'standard_deviation': prediction.scale,
      'low_0.9': low,
      'high_0.9': high,
      'aleatoric': prediction.aleatoric_uncertainty,
      'epistemic': prediction.epistemic_uncertainty,
    }
    widths_of = zip(sets.levels, sets.half_widths()) if sets else ()
    for level, half in widths_of:
      # Without a limit for an input far outside the training data.
      widths = np.where(far, np.inf, half) * raw.scale
      columns[f'guaranteed_low_{level:g}'] = prediction.mean - widths
      columns[f'guaranteed_high_{level:g}'] = prediction.mean + widths
    columns = {k: [f'{v:.6g}' for v in of] for k, of in columns.items()}
    return columns | {'out_of_range': far.astype(int)}
  columns = {
    'class': classes[prediction.probs.argmax(-1)],
    'probability': prediction.probs.max(-1),
    'normalized_entropy': prediction.normalized_entropy,
    'aleatoric': prediction.aleatoric_uncertainty,
    'epistemic': prediction.epistemic_uncertainty,
  }
  for name in list(columns)[1:]:
    columns[name] = [f'{value:.6g}' for value in columns[name]]
  columns['out_of_range'] = far.astype(int)
  by_level = zip(sets.levels, sets.classes(raw.probs)) if sets else ()
  for level, members in by_level:
    rows = members | far[:, np.newaxis]
    columns[f'set_{level:g}'] = ['|'.join(classes[row]) for row in rows]
  return columns


def _examples(trained) -> tuple[np.ndarray, dict[str, Sequence]]:
  """Returns the input's examples, and the columns that are kept."""
  path, where = _INPUT.value, f'--input={_INPUT.value}'
  task = trained.task
  kind = names.kind(path)
  given = flagfile.fields(flags.FLAGS, _FORMAT, present=True)
  for flag in (*given, *(['keep_columns'] if _KEPT.value else [])):
    if kind != 'csv':
      raise ValueError(f'--{flag}: --input must be a .csv.')
  if kind == 'npz':
    return npz.inputs('input', path, _ARRAYS), {}
  if kind != 'csv':
    raise ValueError(f'{where} must be a .csv, a .tsv or an .npz with x.')
  if not task.features:
    shape = ', '.join(map(str, ('num_examples', *task.input_shape)))
    raise ValueError(
      f'{where}: the run was not trained on a .csv: use an .npz with x of '
      f'shape [{shape}].'
    )
  notation = dataclasses.replace(trained.config.notation, **given)
  table = csv_files.read(where, path, notation)
  kept = _KEPT.value
  csv_files.check_columns(where, table, kept, 'which --keep_columns names')
  x = csv_files.encode_like(table, task.features, where, notation)
  name = pathlib.PurePath(path).name
  print(f'{name}: {len(x)} rows: {encoding.describe(x, task.features)}')
  used = [*encoding.columns(task.features), *kept]
  unused = [name for name in table if name not in used]
  if unused:
    print(f'not used: {", ".join(unused)}')
  return x, {name: list(table[name]) for name in kept}


if __name__ == '__main__':
  command_line.main(main)
