"""A user's own table: `--dataset=path/to/file.csv`.

A row is an example, a column with a name of numbers or of categories. Cells are
read by the columns' names, so that their order in a file is nothing.
Rows are counted as a spreadsheet does: the header is row 1.
"""

from collections.abc import Collection, Sequence
import csv
import itertools
import os

import numpy as np

from bfl_tf.datasets import cells as cells_lib
from bfl_tf.datasets import encoding


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

  def cells(self, name: str) -> list[str]:
    """Returns the cells of a column, as they are."""
    rows = itertools.islice(self._lines(), 1, None)
    return [cells[self._places[name]] for _, cells in rows]

  def read(
    self,
    columns: Sequence[str],
    categorical: Collection[str] = (),
    texts: Sequence[str] = (),
    like: encoding.Features = (),
  ) -> tuple[np.ndarray, encoding.Features, dict[str, list[str]]]:
    """Reads the file whole.

    Args:
      columns: that are to be features.
      categorical: those of categories, whatever their cells look like; others
        are where no cell is a number.
      texts: columns without gaps that are taken as they are.
      like: features of another table, which the rows are to have; their own if
        none.

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
    rows: list[int] = []
    defects: list[str] = []
    for row, cells in itertools.islice(self._lines(), 1, None):
      if len(cells) != len(self.header):
        defects.append(
          f'row {row} has {len(cells)} cells, the header {len(self.header)}'
        )
        continue
      rows.append(row)
      for add, place in adders:
        add(cells[place])
      for name, values in kept.items():
        values.append(cell := cells[self._places[name]])
        if cell in cells_lib.MISSING:
          defects.append(f'row {row}, column {name!r} has {cell!r}')
    for column in found:
      defects += column.misfits(like, rows) if like else column.defects(rows)
    if defects:
      more = [f'and {len(defects) - 10} more'] * (len(defects) > 10)
      raise ValueError(
        f'{self._where}: {"; ".join([*defects[:10], *more])}: mend or empty '
        'cells, leave rows out, or see --categorical_columns and '
        '--ignore_columns.'
      )
    if not rows:
      raise ValueError(f'{self._where} has no row below its header.')
    features = like or tuple(f for column in found for f in column.features())
    x = np.zeros([len(rows), len(features)], np.float32)
    for column in found:
      column.write(x, features)
    return x, features, kept

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
  file, used = CsvFile(where, str(path)), encoding.columns(features)
  file.check_columns(used, 'which clients train on')
  numbers = {f.column for f in features if f.value is None}
  return file.read(used, {*used} - numbers, like=features)[0]
