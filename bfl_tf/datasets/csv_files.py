"""A user's own table: `--dataset=path/to/file.csv`.

A row is an example, a column with a name a feature. Cells are read in chunks,
by the columns' names, so that their order in a file is nothing. Rows are
counted as a spreadsheet does: the header is row 1.
"""

from collections.abc import Iterator, Sequence
import csv
import math
from typing import NamedTuple

import numpy as np

CHUNK = 2048
_LARGEST = float(np.finfo(np.float32).max)
# What programs write for nothing; `Na` may be sodium.
_MISSING = frozenset(('NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null'))


class Chunk(NamedTuple):
  """Some rows of a file.

  Attributes:
    wide: `[num_rows, num_features]` float64, finite in float32.
    texts: by column, `num_rows` texts.
    rows: their numbers.
  """

  wide: np.ndarray
  texts: dict[str, list[str]]
  rows: list[int]

  @property
  def x(self) -> np.ndarray:
    """As models take them: `[num_rows, num_features]` float32."""
    return self.wide.astype(np.float32)


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
    if not self.header:
      raise ValueError(f'{where} is empty: its first row names the columns.')
    if len(self.header) == 1 and any(c in self.header[0] for c in ';\t'):
      raise ValueError(
        f'{where}: columns must be separated by commas, got {self.header[0]!r}.'
      )
    self._places = {name: at for at, name in enumerate(self.header)}
    for at, name in enumerate(self.header):
      if not name or self._places[name] != at:
        raise ValueError(
          f'{where}: every column needs a name of its own, got {name!r}.'
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
    self, numbers: Sequence[str], texts: Sequence[str] = (), size: int = CHUNK
  ) -> Iterator[Chunk]:
    """Yields the rows, so many at a time.

    Args:
      numbers: columns of numbers, in the order in which they are wanted.
      texts: columns to take as they are.
      size: rows of a chunk.

    Raises:
      ValueError: a row is of another width, or a cell is empty or no finite
        number; row and column are named.
    """
    lines = self._lines()
    next(lines, None)
    pending: list[tuple[int, list[str]]] = []
    for line in lines:
      pending.append(line)
      if len(pending) == size:
        yield self._chunk(pending, numbers, texts)
        pending = []
    if pending:
      yield self._chunk(pending, numbers, texts)

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
    rows = [row for row, _ in lines]
    try:
      wide = np.array(
        [[_number(cells[at]) for at in places] for _, cells in lines],
        np.float64,
      )
      with np.errstate(over='ignore'):  # Too large for float32: not finite.
        fine = bool(np.isfinite(wide.astype(np.float32)).all())
    except ValueError:
      fine = False
    if not fine:
      self._blame(lines, places)
    found = {name: self._texts(lines, name) for name in texts}
    return Chunk(wide, found, rows)

  def _texts(self, lines, name):
    at = self._places[name]
    for row, cells in lines:
      if not cells[at]:
        raise ValueError(f'{self._where}: row {row}, column {name!r} is empty.')
      if cells[at] in _MISSING:
        raise ValueError(
          f'{self._where}: row {row}, column {name!r} has {cells[at]!r}, a '
          'missing value: leave the row out, or call it otherwise.'
        )
    return [cells[at] for _, cells in lines]

  def _blame(self, lines, places):
    """Raises for the first cell that is no finite float32."""
    for row, cells in lines:
      for at in places:
        problem = _problem(cells[at])
        if problem:
          raise ValueError(
            f'{self._where}: row {row}, column {self.header[at]!r} {problem}.'
          )


def features(where: str, path: str, names: Sequence[str]) -> np.ndarray:
  """Reads some columns of numbers: `[num_rows, num_features]` float32.

  Args:
    where: names the file in errors.
    path: the file.
    names: of the columns, as the clients' table has them.

  Raises:
    ValueError: naming the file and what is wrong in it.
  """
  if not names:
    raise ValueError(f"{where}: a .csv goes with clients' data from a .csv.")
  file = CsvFile(where, path)
  file.check_columns(names, 'which clients train on')
  chunks = [chunk.x for chunk in file.chunks(names)]
  if not chunks:
    raise ValueError(f'{where} has no row below its header.')
  return np.concatenate(chunks)


def _number(text: str) -> float:
  """As a spreadsheet reads it: Python takes 1_000 too."""
  if '_' in text:
    raise ValueError(text)
  return float(text)


def _problem(text: str) -> str | None:
  if not text:
    return 'is empty: fill it in, or leave the row or the column out'
  try:
    value = _number(text)
  except ValueError:
    return (
      f'has {text!r}, which is no number: leave the column out by '
      '--ignore_columns, or name it as --label_column or --client_column'
    )
  if not math.isfinite(value) or abs(value) > _LARGEST:
    return f'has {text!r}, which is not finite in float32'
  return None
