"""Reading and encoding of tables.

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

from bfl_tf.data import arrays, encoding, table_format
from bfl_tf.declare import registry

_WHOLE = re.compile(r'^(-?\d+)\.0+$')
_LARGEST = np.finfo(np.float32).max
# Columns of names, dates or notes have fewer cells per category.
_CELLS_PER_CATEGORY = 3


class CellError(ValueError):
  """A message about cells, and the number of texts by bad column."""

  def __str__(self) -> str:
    return self.args[0]


def read(
  where: str,
  path: str,
  notation: table_format.TableFormat = table_format.DEFAULT,
  bad: dict[int, str] | None = None,
) -> Any:
  """Returns the stripped cells of a UTF-8 file as a data frame of texts.

  Errors of this module begin with `where`. With a dict `bad`, rows that cannot
  be read are no errors: the dict receives the first defect of each of them, by
  row number, and their cells are of no use.
  """
  import pandas

  separator = notation.separator_of(path)
  try:
    # Files of spreadsheets may begin with a byte order mark.
    with open(path, newline='', encoding='utf-8-sig') as file:
      lines = csv.reader(file, delimiter=separator, strict=True)
      # `pandas.read_csv` would take short rows for rows with missing values.
      rows = [[*map(str.strip, row)] for row in lines if row] or [['']]
  except FileNotFoundError as error:
    place = pathlib.Path(path)
    known = [each.name for each in place.parent.glob('*.?sv')]
    hint = registry.hint(place.name, known)
    raise ValueError(f'{where}: no such file.{hint}') from error
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise ValueError(f'{where} is not a .csv in UTF-8: {error}.') from error
  header = rows[0]
  for other in ',;|\t' if len(header) == 1 else '':
    if other in header[0]:
      flag = '--separator=' + repr(other.replace('\t', 'tab'))
      raise ValueError(f'{where} is separated by {other!r}: set {flag}.')
  for at, row in enumerate(rows, start=1):
    if len(row) == len(header):
      continue
    defect = f'row {at} has {len(row)} cells, but the header has {len(header)}'
    if bad is None:
      raise ValueError(f'{where}: {defect}: correct this row.')
    bad[at] = defect
    rows[at - 1] = [''] * len(header)
  named = {name for name in header if name and name.isprintable()}
  if len(named) < len(header) or len(rows) == 1:
    raise ValueError(
      f'{where}: the first row must contain a different, printable name for '
      f'every column, separated by {separator!r}, and rows must follow; got '
      f'{",".join(header)!r}.'
    )
  index = range(2, len(rows) + 1)
  return pandas.DataFrame(rows[1:], index, header, dtype=object)


def check_columns(where: str, table: Any, wanted: Sequence[str], why: str):
  """Raises a ValueError that names the first missing column."""
  for name in wanted:
    if name not in table:
      raise ValueError(
        f'{where} has no column {name!r}, {why}; it has {", ".join(table)}.'
      )


def encode(
  where: str,
  table: Any,
  categorical: Collection[str] = (),
  like: encoding.Features = (),
  notation: table_format.TableFormat = table_format.DEFAULT,
  bad: dict[int, str] | None = None,
) -> tuple[np.ndarray, encoding.Features]:
  """Encodes the columns of a table of texts as features.

  The result is `[num_rows, num_features]` float32, NaN where a number is
  missing; and the features. A column is categorical if it is listed, or if no
  cell is a number. With the features `like` of another table, the table is
  encoded in the same way. A `CellError` names up to ten bad columns; `bad` is
  as in `read`.
  """
  known: dict[str, list[encoding.Feature]] = {}
  for feature in like:
    known.setdefault(feature.column, []).append(feature)
  features, values, defects, counts = [], [], [], {}
  for name, cells in table.items():
    of = notation.of(name)
    try:
      own, x = _encode(cells, name in categorical, known.get(name), of, bad)
    except ValueError as error:
      defects.append(f'column {name!r} has {error}')
      is_text = np.isnan(of.numbers(cells)) & ~of.is_missing(cells)
      counts[name] = int(is_text.sum())
    else:
      features += own
      values += x
  if defects:
    fix = (
      'or remove these rows'
      if like
      else 'or list the column in --categorical_columns or --ignore_columns, '
      'or in --group_column if it names persons'
    )
    raise CellError(
      f'{where}: {"; ".join(defects[:10])}: correct these cells, list texts '
      f'for missing values in --missing_values, {fix}.',
      counts,
    )
  return np.stack(values, axis=1), tuple(features)


def rows_like(
  path: str | os.PathLike,
  features: encoding.Features,
  where: str = '',
  notation: table_format.TableFormat = table_format.DEFAULT,
) -> np.ndarray:
  """Returns the rows of a .csv, encoded with the features of another table.

  Features and notation are those of a `Dataset`, or of a run: `task.features`
  and `config.notation`.
  """
  where = where or str(path)
  if not features:
    raise ValueError(
      f"{where}: server examples can come from a .csv only if the clients' "
      'data is a .csv.'
    )
  table = read(where, str(path), notation)
  return encode_like(table, features, where, notation)


def encode_like(
  table: Any,
  features: encoding.Features,
  where: str,
  notation: table_format.TableFormat,
  bad: dict[int, str] | None = None,
) -> np.ndarray:
  """Returns the rows of a table of `read`, as `rows_like` does."""
  used = encoding.columns(features)
  check_columns(where, table, used, 'which clients train on')
  categorical = {*used} - {f.column for f in features if f.value is None}
  return encode(where, table[used], categorical, features, notation, bad)[0]


def _encode(cells, is_categorical, like, notation, bad):
  """Returns the features of a column, and the float32 values of each."""
  texts = cells.to_numpy()
  numbers = notation.numbers(texts)
  is_number = (abs(numbers) <= _LARGEST) & (not is_categorical)
  values, words = np.full(cells.size, None), texts[~is_number]
  # 1.0 and 1 are the same category.
  values[~is_number] = [
    '' if gap else _WHOLE.sub(r'\1', word)
    for word, gap in zip(words, notation.is_missing(words))
  ]
  if not (like or is_categorical):
    _check(cells, values, numbers, notation)
  like = like or encoding.of_column(cells.name, {*values})
  known = [feature.value for feature in like]
  for row, value in zip(cells.index[~is_number], values[~is_number]):
    if value in known:
      continue
    why = 'not a finite number' if None in known else 'new to the run'
    why = why if value else 'a missing value, which no site had in training'
    if bad is None:
      raise ValueError(f'{value!r} in row {row}, {why}')
    bad.setdefault(row, f'column {cells.name!r} has {value!r}, {why}')
  finite = np.where(is_number, numbers, np.nan)
  return like, [
    np.float32(finite if value is None else values == value) for value in known
  ]


def _check(cells, values, numbers, notation):
  """Raises a ValueError if a column holds neither numbers nor categories."""
  words = cells[values.astype(bool)]
  for row, word in words.items():
    if not word.isprintable():
      raise ValueError(f'an invisible character: {word!r} in row {row}')
  check_notation(words, cells[values != ''], notation)
  known = numbers[~np.isnan(numbers)]
  if words.size and known.size:
    raise ValueError(
      f'numbers, and {words.size} cells that are not finite float32 numbers: '
      f'{words.iloc[0]!r} in row {words.index[0]}'
    )
  distinct = len({*values} - {'', None})
  if words.size < _CELLS_PER_CATEGORY * distinct:
    raise ValueError(
      f'{distinct} texts in {words.size} cells, too many for categories'
    )
  if known.size and arrays.is_lost(known):
    raise ValueError(arrays.LOST)


def check_notation(
  words: Any, known: Any, notation: table_format.TableFormat, where: str = ''
) -> None:
  """Raises a ValueError for a text that is a number in another notation.

  `words` are the cells of a column that are not numbers, and `known` are all
  its cells that are not missing values.
  """
  for row, word in words.drop_duplicates().items():
    if remedy := notation.remedy(word, known):
      raise ValueError(
        f'{where}the number {word!r} in row {row} as a text (to read it: '
        f'{remedy})'
      )
