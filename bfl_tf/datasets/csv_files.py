"""A user's own table: `--dataset=path/to/file.csv`.

A row is an example, a column with a name of numbers or of categories. Cells are
read in chunks, by the columns' names, so that their order in a file is nothing.
Rows are counted as a spreadsheet does: the header is row 1.
"""

from collections.abc import Collection, Iterator, Sequence
import csv
import itertools
import math
import os

import numpy as np

from bfl_tf.datasets import encoding

CHUNK = 2048
_LARGEST = float(np.finfo(np.float32).max)
# What programs write for nothing; `Na` may be sodium.
_MISSING = frozenset(
  ('', '?', 'NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null')
)
# Fewer rows than this for each category are names, or dates, or notes.
_ROWS_PER_CATEGORY = 3
# Of what cannot be read, in one line.
_SHOWN = 10


class CsvFile:
  """A file with a header.

  Attributes:
    header: the columns' names.
  """

  def __init__(self, where: str, path: str):
    """Reads the header.

    Args:
      where: names the file in errors, with its flag.
      path: the file, in UTF-8.

    Raises:
      ValueError: there is none, or it has no header of distinct names.
    """
    self._where, self._path = where, path
    self.header: list[str] = next((cells for _, cells in self._lines()), [])
    self._places = {name: at for at, name in enumerate(self.header)}
    if '' in self._places or not 0 < len(self._places) == len(self.header):
      raise ValueError(
        f'{where}: the first row must name every column, each by a name of its '
        f'own, separated by commas, got {",".join(self.header)!r}.'
      )

  def check_columns(self, wanted: Sequence[str], why: str) -> None:
    """Raises a ValueError that names the first column that is not there."""
    for name in wanted:
      if name not in self._places:
        raise ValueError(
          f'{self._where} has no column {name!r}, {why}; it has '
          f'{", ".join(self.header)}.'
        )

  def features(
    self, columns: Sequence[str], categorical: Collection[str] = ()
  ) -> encoding.Features:
    """Reads the file for what its cells say.

    Args:
      columns: that are to be features.
      categorical: those whose numbers name categories; a column without any
        number needs no naming.

    Raises:
      ValueError: columns have numbers and words, or nearly as many words as
        rows; all of them are named.
    """
    found = [_Column(name, name in categorical) for name in columns]
    places = [self._places[name] for name in columns]
    num_rows = 0
    for row, cells in self._rows():
      num_rows += 1
      for place, column in zip(places, found, strict=True):
        column.see(row, cells[place])
    self._refuse(
      [column.defect(num_rows) for column in found],
      'mend or empty cells, or see --categorical_columns and --ignore_columns',
    )
    return tuple(feature for column in found for feature in column.features())

  def chunks(
    self, features: encoding.Features, texts: Sequence[str] = ()
  ) -> Iterator[tuple[np.ndarray, dict[str, list[str]]]]:
    """Yields the rows, `CHUNK` at a time.

    Args:
      features: what is wanted of the cells, in this order.
      texts: columns to take as they are.

    Yields:
      `[num_rows, num_features]` float32, NaN where a number is missing; texts
      by column.

    Raises:
      ValueError: a row is of another width, or cells do not say what is wanted;
        the first of these are named by row and column, and counted, once the
        whole file is read.
    """
    places = {tuple(feature): at for at, feature in enumerate(features)}
    columns = encoding.columns(features)
    defects: list[str] = []
    rows = self._rows()
    while some := list(itertools.islice(rows, CHUNK)):
      x = np.zeros([len(some), len(features)], np.float32)
      for values, (row, cells) in zip(x, some, strict=True):
        for name in columns:
          cell = cells[self._places[name]]
          if defect := _encode(values, places, name, cell):
            defects.append(f'row {row}, column {name!r} has {cell!r}, {defect}')
        for name in texts:
          cell = cells[self._places[name]]
          if cell in _MISSING:
            defects.append(
              f'row {row}, column {name!r} has {cell!r}, a missing value'
            )
      if not defects:
        yield (
          x,
          {name: [c[self._places[name]] for _, c in some] for name in texts},
        )
    self._refuse(defects, 'mend these cells, or leave their rows out')

  def read(
    self, features: encoding.Features, texts: Sequence[str] = ()
  ) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Returns all `chunks` as one."""
    chunks = list(self.chunks(features, texts))
    if not chunks:
      raise ValueError(f'{self._where} has no row below its header.')
    return np.concatenate([x for x, _ in chunks]), {
      name: [text for _, found in chunks for text in found[name]]
      for name in texts
    }

  def _refuse(self, defects, remedy):
    """Names what is wrong in the whole file, in one line."""
    defects = [defect for defect in defects if defect]
    if defects:
      more = len(defects) - _SHOWN
      shown = defects[:_SHOWN] + ([f'and {more} more'] if more > 0 else [])
      raise ValueError(f'{self._where}: {"; ".join(shown)}: {remedy}.')

  def _rows(self):
    """Yields row numbers and cells below the header."""
    for row, cells in itertools.islice(self._lines(), 1, None):
      if len(cells) != len(self.header):
        raise ValueError(
          f'{self._where}: row {row} has {len(cells)} cells, the header '
          f'{len(self.header)}.'
        )
      yield row, cells

  def _lines(self):
    """Yields row numbers and cells; empty lines are skipped, and counted."""
    try:
      # Spreadsheets begin a file with a mark that is no part of a name.
      with open(self._path, newline='', encoding='utf-8-sig') as file:
        reader = csv.reader(file, strict=True)
        # A quoted line break is within a row.
        for row, cells in enumerate(reader, start=1):
          if cells:
            yield row, [cell.strip() for cell in cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
      said = getattr(error, 'strerror', None) or error
      raise ValueError(
        f'{self._where} cannot be read as a .csv file: {said}.'
      ) from error


class _Column:
  """What the cells of a column were, as they were seen."""

  def __init__(self, name, is_categorical):
    self.name, self._is_categorical = name, is_categorical
    self._has_gaps = False
    self._low, self._high = math.inf, -math.inf
    # By word, the row of the first cell that has it.
    self._words: dict[str, int] = {}

  def see(self, row, cell):
    if cell in _MISSING:
      self._has_gaps = True
      return
    value = None if self._is_categorical else _number(cell)
    if value is None:
      self._words.setdefault(_word(cell), row)
    else:
      self._low, self._high = min(self._low, value), max(self._high, value)

  def features(self):
    values: set[str | None] = set(self._words)
    if self._low <= self._high:
      values.add(None)
    if self._has_gaps:
      values.add('')
    return encoding.of_column(self.name, values)

  def defect(self, num_rows) -> str:
    words, spread = self._words, self._high - self._low
    if words and spread >= 0:
      some = [f'{w!r} in row {row}' for w, row in words.items()][:3]
      return f'column {self.name!r} has numbers, and {", ".join(some)}'
    if len(words) > max(2, num_rows // _ROWS_PER_CATEGORY):
      return f'column {self.name!r} has {len(words)} words in {num_rows} rows'
    if spread > 0 and abs(self._low) > 1e6 * spread:
      return (
        f'column {self.name!r} has large numbers that hardly differ, which '
        'float32 cannot hold (subtract the first from all)'
      )
    return ''


def _number(text) -> float | None:
  """Returns a number that is finite in float32 too; None of anything else."""
  try:
    value = float(text)
  except ValueError:
    return None
  # Python takes 1_000 too, which no spreadsheet does.
  return None if '_' in text or not abs(value) <= _LARGEST else value


def _word(text) -> str:
  """Returns what a cell calls its category; 1 and 1.0 are one."""
  value = _number(text)
  if value is None:
    return text
  return str(int(value)) if value.is_integer() else str(value)


def _encode(values, places, column, cell) -> str:
  """Writes what a cell says into its row; returns why it cannot, if so."""
  said = '' if cell in _MISSING else cell
  number = places.get((column, None))
  at = places.get((column, _word(said) if number is None else said))
  if number is not None:
    value = _number(said) if said else math.nan
    if value is None:
      return 'no finite number'
    values[number] = value
  if at is not None:
    values[at] = 1
  elif number is None or not said:
    return 'new to the run'
  return ''


def rows_like(
  path: str | os.PathLike, features: encoding.Features, where: str = ''
) -> np.ndarray:
  """Returns a table's rows as those of another: `[num_rows, num_features]`.

  Args:
    path: the .csv file.
    features: of the other, as of `Dataset.features` or a run's `task.features`.
    where: names the file in errors.

  Raises:
    ValueError: it lacks a column, or cells do not say what is wanted.
  """
  where = where or str(path)
  if not features:
    raise ValueError(f"{where}: a .csv goes with clients' data from a .csv.")
  file = CsvFile(where, str(path))
  file.check_columns(encoding.columns(features), 'which clients train on')
  return file.read(features)[0]
