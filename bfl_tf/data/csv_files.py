"""Reading and encoding of .csv files.

A row is an example, and a column has numbers or categories. Columns are found
by name, so that their order in the file does not matter. Errors count rows as a
spreadsheet does: the header is row 1. Empty lines are not counted.
"""

from collections.abc import Collection, Sequence
import csv
import os
import pathlib
import re
from typing import Any

import numpy as np

from bfl_tf.config import registry
from bfl_tf.data import arrays, encoding

_LARGEST = np.finfo(np.float32).max
_NUMBER = r'[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?'
# Common texts for missing values; `Na` is excluded because it may be sodium.
MISSING = ('', '?', 'NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null')
# Columns of names, dates or notes have fewer cells per category.
_CELLS_PER_CATEGORY = 3


def read(where: str, path: str) -> Any:
  """Returns the stripped cells of a UTF-8 file as a data frame of texts.

  Raises:
    ValueError: The file cannot be read, or has no header of distinct names. The
      message begins with `where`.
  """
  import pandas

  try:
    # Files of spreadsheets may begin with a byte order mark.
    with open(path, newline='', encoding='utf-8-sig') as file:
      # `pandas.read_csv` would take short rows for rows with missing values.
      rows = [row for row in csv.reader(file, strict=True) if row]
  except FileNotFoundError as error:
    folder = pathlib.Path(path).absolute().parent
    near = registry.hint(
      pathlib.Path(path).name, [each.name for each in folder.glob('*.csv')]
    )
    raise ValueError(f'{where}: no such file.{near}') from error
  except UnicodeDecodeError as error:
    raise ValueError(f'{where} is not UTF-8 text: save it as UTF-8.') from error
  except (OSError, csv.Error) as error:
    raise ValueError(f'{where} cannot be read as a .csv: {error}.') from error
  for at, row in enumerate(rows, start=1):
    if len(row) != len(rows[0]):
      raise ValueError(
        f'{where}: row {at} has {len(row)} cells, but the header has '
        f'{len(rows[0])}: correct this row.'
      )
  table = pandas.DataFrame(rows or [['']], dtype=object)
  table.index += 1
  header, table = table.iloc[0].str.strip(), table[1:]
  if '' in set(header) or not header.is_unique:
    raise ValueError(
      f'{where}: the first row must contain a different name for every '
      f'column, separated by commas, got {",".join(header)!r}.'
    )
  if table.empty:
    raise ValueError(f'{where} has no row below its header.')
  return table.apply(lambda column: column.str.strip()).set_axis(header, axis=1)


def is_number(text: str) -> bool:
  """Returns whether a cell is a number."""
  return re.fullmatch(_NUMBER, text) is not None


def check_columns(where: str, table: Any, wanted: Sequence[str], why: str):
  """Raises a ValueError that names the first missing column."""
  for name in wanted:
    if name not in table:
      hint = ' Separate columns by commas.' if len(table.columns) == 1 else ''
      raise ValueError(
        f'{where} has no column {name!r}, {why}; it has {", ".join(table)}.'
        f'{hint}'
      )


def encode(
  where: str,
  table: Any,
  categorical: Collection[str] = (),
  like: encoding.Features = (),
) -> tuple[np.ndarray, encoding.Features]:
  """Encodes the columns of a table as features.

  Args:
    where: Name of the file in errors.
    table: Cells as text.
    categorical: Columns of categories, even if their cells are numbers. Other
      columns are categorical if no cell is a number.
    like: Features of another table; this table is encoded in the same way.

  Returns:
    `[num_rows, num_features]` float32, NaN where a number is missing; and the
    features.

  Raises:
    ValueError: Columns cannot be encoded; the message names up to ten of them.
  """
  found, values, defects = [], [], []
  for name, cells in table.items():
    wanted = [feature for feature in like if feature.column == name]
    try:
      features, x = _encode(cells, name in categorical, wanted)
    except ValueError as error:
      defects.append(f'column {name!r} has {error}')
    else:
      found += features
      values += x
  if defects:
    fix = (
      'or remove these rows'
      if like
      else 'make them empty, or list the column in --categorical_columns or '
      '--ignore_columns'
    )
    raise ValueError(
      f'{where}: {"; ".join(defects[:10])}: correct these cells, {fix}.'
    )
  return np.stack(values, axis=1), tuple(found)


def rows_like(
  path: str | os.PathLike, features: encoding.Features, where: str = ''
) -> np.ndarray:
  """Returns the rows of a table, encoded with the features of another table.

  Args:
    path: The .csv file.
    features: Features of the other table, such as `Dataset.features` or a run's
      `task.features`.
    where: Name of the file in errors.

  Raises:
    ValueError: A column is missing, or cells do not match the features.
  """
  where = where or str(path)
  if not features:
    raise ValueError(
      f"{where}: server examples can come from a .csv only if the clients' "
      'data is a .csv.'
    )
  table, used = read(where, str(path)), encoding.columns(features)
  check_columns(where, table, used, 'which clients train on')
  numbers = {f.column for f in features if f.value is None}
  return encode(where, table[used], {*used} - numbers, features)[0]


def _encode(cells, is_categorical, like):
  """Returns the features of a column, and the float32 values of each."""
  is_number = cells.str.fullmatch(_NUMBER) & (not is_categorical)
  numbers = cells.where(is_number).astype(np.float64)
  finite = numbers.where(abs(numbers) <= _LARGEST)
  # 1.0 and 1 are the same category.
  words = cells.where(~cells.isin(MISSING), '')[finite.isna()]
  words = words.str.replace(r'^(-?\d+)\.0+$', r'\1', regex=True)
  if not like:
    if not is_categorical:
      _check(numbers, words[words != ''])
    kinds = {*words, *([None] if len(words) < len(cells) else [])}
    like = encoding.of_column(cells.name, kinds)
  known = [feature.value for feature in like]
  for row, word in words[~words.isin(known)].items():
    why = 'not a finite number' if None in known else 'new to the run'
    raise ValueError(
      f'{word!r} in row {row}, '
      f'{why if word else "a missing value, which no site had in training"}'
    )
  at = words.reindex(cells.index)
  return like, [
    np.float32(finite if value is None else at == value) for value in known
  ]


def _check(numbers, words):
  """Raises a ValueError if a column holds neither numbers nor categories."""
  if len(words) and numbers.count():
    raise ValueError(
      f'numbers, and {len(words)} cells that are not finite float32 numbers: '
      f'{words.iloc[0]!r} in row {words.index[0]}'
    )
  if len(words) < _CELLS_PER_CATEGORY * words.nunique():
    raise ValueError(
      f'{words.nunique()} texts in {len(words)} cells, too many for categories'
    )
  if numbers.count() and arrays.is_lost(numbers.dropna().to_numpy()):
    raise ValueError(arrays.LOST)
