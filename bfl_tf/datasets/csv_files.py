"""A user's own table: `--dataset=path/to/file.csv`.

A row is an example, a column with a name of numbers or of categories. Cells are
read by the columns' names, so that their order in a file is nothing.
Rows are counted as a spreadsheet does: the header is row 1.
"""

from collections.abc import Collection, Iterator, Sequence
import csv
import itertools
import os

import numpy as np

from bfl_tf.datasets import cells as cells_lib
from bfl_tf.datasets import encoding

CHUNK = 2048


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

  def read(
    self,
    columns: Sequence[str],
    categorical: Collection[str] = (),
    texts: Sequence[str] = (),
  ) -> tuple[np.ndarray, encoding.Features, dict[str, list[str]]]:
    """Reads the file whole.

    Args:
      columns: that are to be features.
      categorical: those of categories, whatever their cells look like; others
        are where no cell is a number.
      texts: columns without gaps that are taken as they are.

    Returns:
      `[num_rows, num_features]` float32, NaN where a number is missing; what
      they say; texts by column.

    Raises:
      ValueError: the file cannot be read so. What is wrong in all of it is
        counted, and the first of it named.
    """
    found = [cells_lib.Column(name, name in categorical) for name in columns]
    adders = [(column.add, self._places[column.name]) for column in found]
    kept: dict[str, list[str]] = {name: [] for name in texts}
    defects, numbers = _Defects(), []
    for row, cells in self._rows(defects):
      numbers.append(row)
      for add, place in adders:
        add(cells[place])
      for name, values in kept.items():
        values.append(cell := cells[self._places[name]])
        if cell in cells_lib.MISSING:
          defects.add_cell(row, name, cell, 'a missing value')
    for column in found:
      defects.add(column.defect(numbers))
    defects.refuse(
      self._where,
      'mend or empty cells, or see --categorical_columns and --ignore_columns',
    )
    if not numbers:
      raise ValueError(f'{self._where} has no row below its header.')
    features = tuple(f for column in found for f in column.features())
    x = np.zeros([len(numbers), len(features)], np.float32)
    for column in found:
      column.write(x, features)
    return x, features, kept

  def chunks(self, features: encoding.Features) -> Iterator[np.ndarray]:
    """Yields the rows as those of another table, `CHUNK` at a time.

    Args:
      features: what is wanted of the cells, in this order.

    Yields:
      `[num_rows, num_features]`, as of `read`.

    Raises:
      ValueError: as of `read`, or a cell says what is none of them.
    """
    are_numbers = {f.column for f in features if f.value is None}
    defects = _Defects()
    rows = self._rows(defects)
    while some := list(itertools.islice(rows, CHUNK)):
      x = np.zeros([len(some), len(features)], np.float32)
      misfits = []
      for name in encoding.columns(features):
        column = cells_lib.Column(name, name not in are_numbers)
        for _, cells in some:
          column.add(cells[self._places[name]])
        misfits += column.write(x, features)
      for at, name, why in sorted(misfits):
        row, cells = some[at]
        defects.add_cell(row, name, cells[self._places[name]], why)
      if not defects.count:
        yield x
    defects.refuse(self._where, 'mend them, or leave their rows out')

  def _rows(self, defects):
    """Yields row numbers and cells below the header, of its width."""
    for row, cells in itertools.islice(self._lines(), 1, None):
      if len(cells) == len(self.header):
        yield row, cells
      else:
        defects.add(
          f'row {row} has {len(cells)} cells, the header {len(self.header)}'
        )

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


class _Defects:
  """What is wrong in a whole file: the first of it, and how much."""

  def __init__(self):
    self.count = 0
    self._first: list[str] = []

  def add(self, defect: str) -> None:
    if defect:
      self.count += 1
      self._first += [defect] * (self.count <= 10)

  def add_cell(self, row, column, cell, why):
    self.add(f'row {row}, column {column!r} has {cell!r}, {why}')

  def refuse(self, where: str, remedy: str) -> None:
    """Raises a ValueError of one line if there is anything."""
    if self.count:
      more = self.count - len(self._first)
      shown = [*self._first, *[f'and {more} more'] * (more > 0)]
      raise ValueError(f'{where}: {"; ".join(shown)}: {remedy}.')


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
  chunks = list(file.chunks(features))
  if not chunks:
    raise ValueError(f'{where} has no row below its header.')
  return np.concatenate(chunks)
