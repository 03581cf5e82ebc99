"""A user's own table: `--dataset=path/to/file.csv`.

A row is an example, a column with a name a feature. Cells are read in chunks,
by the columns' names, so that their order in a file is nothing. Rows are
counted as a spreadsheet does: the header is row 1.
"""

from collections.abc import Iterator, Sequence
import csv
import itertools
import math

import numpy as np

CHUNK = 2048
_LARGEST = float(np.finfo(np.float32).max)
# What programs write for nothing; `Na` may be sodium.
_MISSING = frozenset(('NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null'))


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

  def chunks(
    self, numbers: Sequence[str], texts: Sequence[str] = ()
  ) -> Iterator[tuple[np.ndarray, dict[str, list[str]]]]:
    """Yields the rows, `CHUNK` at a time.

    Args:
      numbers: columns of numbers, in the order in which they are wanted.
      texts: columns to take as they are.

    Yields:
      `[num_rows, num_features]` float64, finite in float32 too; texts by
      column.

    Raises:
      ValueError: a row is of another width, or a cell is empty or no finite
        number; row and column are named.
    """
    lines = itertools.islice(self._lines(), 1, None)
    while some := list(itertools.islice(lines, CHUNK)):
      yield self._chunk(some, numbers, texts)

  def read(
    self, numbers: Sequence[str], texts: Sequence[str] = ()
  ) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Returns all `chunks` as one."""
    chunks = list(self.chunks(numbers, texts))
    if not chunks:
      raise ValueError(f'{self._where} has no row below its header.')
    return np.concatenate([x for x, _ in chunks]), {
      name: [text for _, found in chunks for text in found[name]]
      for name in texts
    }

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

  def _chunk(self, lines, numbers, texts):
    for row, cells in lines:
      if len(cells) != len(self.header):
        raise ValueError(
          f'{self._where}: row {row} has {len(cells)} cells, the header '
          f'{len(self.header)}.'
        )
    places = [self._places[name] for name in numbers]
    wide = [
      [self._number(row, at, cells[at]) for at in places]
      for row, cells in lines
    ]
    found = {name: self._texts(lines, self._places[name]) for name in texts}
    return np.array(wide, np.float64), found

  def _number(self, row, at, text):
    try:
      value = float(text)
    except ValueError:
      value = math.nan
    # Python takes 1_000 too, which no spreadsheet does.
    if not abs(value) <= _LARGEST or '_' in text:
      raise ValueError(
        f'{self._where}: row {row}, column {self.header[at]!r} has {text!r}, '
        'which is no finite number: fill it in, leave the row out, or the '
        'column by --ignore_columns.'
      )
    return value

  def _texts(self, lines, at):
    for row, cells in lines:
      if not cells[at] or cells[at] in _MISSING:
        raise ValueError(
          f'{self._where}: row {row}, column {self.header[at]!r} has '
          f'{cells[at]!r}, a missing value: leave the row out, or call it '
          'otherwise.'
        )
    return [cells[at] for _, cells in lines]


def features(where: str, path: str, names: Sequence[str]) -> np.ndarray:
  """Reads the columns of the clients' table: `[num_rows, num_features]`."""
  if not names:
    raise ValueError(f"{where}: a .csv goes with clients' data from a .csv.")
  file = CsvFile(where, path)
  file.check_columns(names, 'which clients train on')
  return file.read(names)[0]
