"""Predict the rows of a file with a finished run.

  python -m experiments.predict --run=runs/wine_sites \\
    --input=configs/wine_sites/new.csv --output=predictions.csv

The output has one row for each row of the input. Columns of a .csv file are
matched by name; an .npz file must contain x. Exit code 2: a flag, a file or a
cell is wrong, and nothing was written.
"""

from collections.abc import Sequence
import dataclasses
import pathlib
import shlex

from absl import flags
import numpy as np
import pandas as pd

from bfl_tf import data, files
from bfl_tf.analysis import prediction_sets, risk
from bfl_tf.config import flagfile
from bfl_tf.config.config import FIELDS
from bfl_tf.data import csv_files, encoding, names, npz
from bfl_tf.data import table_format as notation
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
_EVENT = flags.DEFINE_string(
  'event',
  '',
  'Class whose probability gets an interval, for two classes; empty: the event '
  'of bfl-tf report, or the last class without a report.',
)
_LIMITS = flags.DEFINE_string(
  'limits',
  '',
  'Path of a .csv file with the columns column, low and high; an empty cell is '
  'no limit. The output column warning names the columns of a row outside of '
  'these limits.',
)
_LIMITS_FROM = flags.DEFINE_string(
  'limits_from',
  '',
  'Table of this site from which the file --limits is computed: the 0.5 % and '
  '99.5 % quantiles of each column of numbers. Keep the file at the site.',
)
_KEEP_BAD = flags.DEFINE_boolean(
  'keep_bad_rows',
  False,
  'Write rows of a .csv file that cannot be read, without a prediction; the '
  'output column error has the reason.',
)
# The notation of the input, by default that of the run.
_FORMAT = {name: FIELDS[name] for name in data.FORMAT}
flagfile.define_fields(flags.FLAGS, _FORMAT)
flags.adopt_module_key_flags(flagfile)
_ARRAYS = ('x', 'x_test')
# Levels of the interval of a probability, and of computed limits.
_INTERVAL, _USUAL = (0.05, 0.95), (0.005, 0.995)


def main() -> None:
  """Writes the predictions and prints their number."""
  run = finished.path()
  for flag in (_INPUT, _OUTPUT):
    if not flag.value:
      command_line.fail(f'--{flag.name} is missing: name a file.')
  path = finished.output(_OUTPUT.value, '', _INPUT.value)
  known, found = prediction_sets.read(run), risk.read(run)
  by_site = known.thresholds if known and known.by == 'site' else {}
  reported = dict.fromkeys([*by_site, *(found.maps if found else ())])
  trained = finished.model(run, _SITE.value, [*filter(None, reported)])
  risk.check(risk.Risk(_EVENT.value), trained.task.classes, True)
  if not path.parent.is_dir():
    raise ValueError(f'--output={path}: the folder {path.parent} is missing.')
  limits, new_limits = _read_limits(trained)
  bad: dict[int, str] = {}
  x, kept = _examples(trained, bad)
  sets = _read_sets(run, trained)
  if trained.has_recalibration:
    print(
      f'The risk of {trained.named(trained.risk.event)} is recalibrated by '
      f'{trained.risk.recalibrate}, for {_SITE.value or "all sites"}'
    )
  try:
    prediction = trained.predict(x, _SAMPLES.value)
  except ValueError as error:
    raise ValueError(f'--input={_INPUT.value}: {error}') from error
  frame = pd.DataFrame(_columns(trained, sets, prediction, x))
  if limits:
    frame['warning'] = _warnings(trained, limits, x)
  if _KEEP_BAD.value:
    # A row of the table has the number of its line; the header is row 1.
    frame.loc[[row - 2 for row in bad]] = np.nan
    frame['error'] = [bad.get(row, '') for row in range(2, len(x) + 2)]
  for name in kept.keys() & {*frame}:
    raise ValueError(
      f'--keep_columns={name}: the output already has this column.'
    )
  frame = pd.concat([pd.DataFrame(kept, index=frame.index), frame], axis=1)
  with files.replacing(path) as new:
    frame.to_csv(new, index=False, float_format='%.6g')
  if new_limits:
    files.write_text(pathlib.Path(_LIMITS.value), new_limits)
    print(f'limits in {_LIMITS.value}: keep this file at the site')
  if bad:
    print(f'rows that cannot be read: {len(bad)}; the column error says why')
  if far := int(frame['out_of_range'].sum()):
    remark = ', and their sets contain every label' if sets else ''
    print(
      f'rows out of range: {far}; a number in each is more than 10 standard '
      f'deviations from its training mean{remark}'
    )
  print(f'{len(x)} predictions in {_OUTPUT.value}')


def _read_sets(run, trained):
  """Loads the prediction sets; reports if they are missing or trivial."""
  if _SITE.value and trained.has_personal_models and not trained.needs_site:
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
  if trained.num_samples(_SAMPLES.value) != sets.num_samples:
    print(
      'The output has no prediction sets: they were calibrated for '
      'predictions without --num_mc_samples.'
    )
    return None
  if sets.by == 'site' and not _SITE.value:
    print(
      'The prediction sets have the threshold of all sites: name a site with '
      '--site'
    )
  sets = sets.at(_SITE.value)
  for level in sets.levels:
    if not sets.is_enough(level):
      what = f'set_{level:g} contains every class'
      if trained.task.is_numeric:
        what = f'guaranteed intervals of level {level:g} are unbounded'
      number = sets.num_examples['']
      print(f'{what}: {number} calibration examples are too few')
  return sets


def _columns(trained, sets, prediction, x) -> dict[str, Sequence]:
  """Returns the columns of the output."""
  classes, raw = np.array(trained.task.classes), prediction
  far = trained.is_out_of_range(x)
  calibrated = _CALIBRATED.value or trained.has_recalibration
  if calibrated:
    prediction = trained.calibrated(prediction, _SITE.value)
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
    return columns | {'out_of_range': far.astype(float)}
  columns = {
    'class': classes[prediction.probs.argmax(-1)],
    'probability': prediction.probs.max(-1),
    'normalized_entropy': prediction.normalized_entropy,
  }
  for name, probs in zip(classes, prediction.probs.T):
    columns[f'probability_{name}'] = probs
  if trained.members or trained.num_samples(_SAMPLES.value) > 1:
    low, high = trained.quantiles(
      x, _INTERVAL, _SAMPLES.value, calibrated, _SITE.value
    )
    shown = classes
    if len(classes) == 2:
      reported = trained.risk.event if trained.risk else classes[-1]
      shown = [_EVENT.value or reported]
    for name in shown:
      at = trained.task.classes.index(name)
      columns[f'probability_{name}_q05'] = low[:, at]
      columns[f'probability_{name}_q95'] = high[:, at]
  columns['out_of_range'] = far.astype(float)
  by_level = zip(sets.levels, sets.classes(raw.probs)) if sets else ()
  for level, members in by_level:
    rows = members | far[:, np.newaxis]
    columns[f'set_{level:g}'] = ['|'.join(classes[row]) for row in rows]
  return columns


def _read_limits(trained) -> tuple[dict[str, tuple[float, float]], str]:
  """Returns the limits by column, and the text of a new file of limits."""
  path, source = _LIMITS.value, _LIMITS_FROM.value
  if source and (not path or pathlib.Path(path).exists()):
    raise ValueError('--limits_from needs --limits, a new file to write.')
  if not path:
    return {}, ''
  numbers = _numbers(trained)
  if not source:
    table = csv_files.read(f'--limits={path}', path)
    header = ['column', 'low', 'high']
    csv_files.check_columns(f'--limits={path}', table, header, 'but needs it')
    limits = {}
    for row, (name, low, high) in table[header].iterrows():
      # An empty cell is no limit.
      ends = np.where(
        [not low, not high], [-np.inf, np.inf],
        notation.DEFAULT.numbers([low, high]),
      )  # fmt: skip
      if name not in numbers or not ends[0] <= ends[1]:
        raise ValueError(
          f'--limits={path}: row {row} must have low <= high and a column of '
          f'numbers of the run: {", ".join(numbers)}.'
        )
      limits[name] = tuple(ends)
    return limits, ''
  x = csv_files.rows_like(
    source, trained.task.features, f'--limits_from={source}',
    trained.config.notation,
  )  # fmt: skip
  limits = {
    name: tuple(np.nanquantile(x[:, at], _USUAL))
    for name, at in numbers.items()
    if not np.isnan(x[:, at]).all()
  }
  lines = [
    f'{name},{low:.6g},{high:.6g}' for name, (low, high) in limits.items()
  ]
  return limits, '\n'.join(['column,low,high', *lines, ''])


def _numbers(trained) -> dict[str, int]:
  """Returns the places of the features that are numbers, by column."""
  features = enumerate(trained.task.features)
  return {f.column: at for at, f in features if f.value is None}


def _warnings(trained, limits, x) -> list[str]:
  """Returns the columns outside of their limits, for each row."""
  names, places = np.array([*limits]), _numbers(trained)
  values = x[:, [places[name] for name in names]]
  # Cells are float32: a limit that equals a cell must not differ from it.
  low, high = np.float32([*limits.values()]).T
  outside = (values < low) | (values > high)
  return ['|'.join(names[row]) for row in outside]


def _examples(trained, bad) -> tuple[np.ndarray, dict[str, Sequence]]:
  """Returns the input's examples, and the columns that are kept.

  With --keep_bad_rows, the dict `bad` receives the defects of rows.
  """
  path, where = _INPUT.value, f'--input={_INPUT.value}'
  task = trained.task
  kind = names.kind(path)
  given = flagfile.fields(flags.FLAGS, _FORMAT, present=True)
  ours = (_KEPT, _KEEP_BAD)
  for flag in (*given, *(each.name for each in ours if each.value)):
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
  of_file = dataclasses.replace(trained.config.notation, **given)
  defects = bad if _KEEP_BAD.value else None
  table = csv_files.read(where, path, of_file, defects)
  kept = _KEPT.value
  csv_files.check_columns(where, table, kept, 'which --keep_columns names')
  x = csv_files.encode_like(table, task.features, where, of_file, defects)
  # Predictions of bad rows are not written.
  x[[row - 2 for row in bad]] = task.inputs.mean
  name = pathlib.PurePath(path).name
  print(f'{name}: {len(x)} rows: {encoding.describe(x, task.features)}')
  used = [*encoding.columns(task.features), *kept]
  unused = [name for name in table if name not in used]
  if unused:
    print(f'not used: {", ".join(unused)}')
  return x, {name: list(table[name]) for name in kept}


if __name__ == '__main__':
  command_line.main(main)
