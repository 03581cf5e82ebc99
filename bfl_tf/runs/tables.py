"""Tables of rows by column: as text, and as files.

A row is a mapping of columns to values; a column that it has no value of is not
in it. `Rows` is the table of a run's rounds, which grows; others are written
once.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import io
import os
import pathlib
from typing import Any

from bfl_tf import files, run_files
from bfl_tf.federation import stopping

Row = Mapping[str, Any]
Table = Sequence[Row]

# Columns of text, which may look like a number.
_TEXT = ('rejected', 'rejected_reasons')


def table(rows: Table) -> str:
  """Returns rows as aligned text; a dash where there is no number."""
  names = columns(rows)
  lines = [names] + [[_text(row.get(name)) for name in names] for row in rows]
  widths = [max(map(len, cells)) for cells in zip(*lines)]
  return '\n'.join(
    '  '.join(
      cell.rjust(width) if at else cell.ljust(width)
      for at, (cell, width) in enumerate(zip(line, widths))
    )
    for line in lines
  )


def write_csv(path: pathlib.Path, rows: Table) -> None:
  """Writes rows below a header; an empty cell where there is no value."""
  text = io.StringIO()
  writer = csv.DictWriter(text, columns(rows), restval='', lineterminator='\n')
  writer.writeheader()
  writer.writerows(rows)
  files.write_text(path, text.getvalue())


@contextlib.contextmanager
def cleared(folder: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a folder without tables, plots and scores of an earlier question.

  What else is there stays. `scores.json` goes first, and is to be written last:
  who is killed leaves none, and the same command makes all anew.

  Raises:
    stopping.MachineError: something cannot be written.
  """
  try:
    folder.mkdir(exist_ok=True)
    (folder / run_files.SCORES).unlink(missing_ok=True)
    for kind in ('csv', 'png', 'html'):
      for old in folder.glob(f'*.{kind}'):
        old.unlink()
    yield folder
  except OSError as error:
    raise stopping.MachineError(
      f'{folder} cannot be written: {error}.'
    ) from error


class Rows(list[dict[str, Any]]):
  """The rows of `metrics.csv`: one a round, from the start on.

  They have the same types whether they were just added or read back: numbers
  where their text looks like one.
  """

  def __init__(self, path: pathlib.Path):
    """Begins without any; whatever the file holds is there until `add`."""
    super().__init__()
    self._path = path
    self._columns: list[str] = []

  def resume(self, rounds: int) -> None:
    """Reads those up to `rounds` rounds back; the others leave the file."""
    self._columns, found = _read(self._path)
    self[:] = found[: rounds + 1]
    self._rewrite()

  def add(self, row: Row) -> None:
    """Appends a row to the file, which is on the disk then."""
    texts = {k: '' if v is None else str(v) for k, v in row.items()}
    self.append(_typed(texts))
    new = [name for name in row if name not in self._columns]
    if new:
      # Scores first, times last: what a reader looks for.
      self._columns = sorted([*self._columns, *new], key=_is_time)
      return self._rewrite()
    with self._path.open('a', newline='') as file:
      csv.DictWriter(file, self._columns, restval='').writerow(self[-1])
      file.flush()
      os.fsync(file.fileno())

  def _rewrite(self) -> None:
    """Writes the whole file again, with new columns."""
    with (
      files.replacing(self._path) as path,
      path.open('w', newline='') as file,
    ):
      writer = csv.DictWriter(file, self._columns, restval='')
      writer.writeheader()
      writer.writerows(self)


def read(path: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the rows of a `metrics.csv` from round 0 to the first gap.

  A last line that was cut is no row.
  """
  return _read(path)[1]


def _read(path) -> tuple[list[str], list[dict[str, Any]]]:
  try:
    text = path.read_text()
  except (FileNotFoundError, UnicodeDecodeError):
    return [], []
  whole = io.StringIO(text[: text.rfind('\n') + 1])
  header, *table = list(csv.reader(whole)) or [[]]
  found: list[dict[str, Any]] = []
  for cells in table:
    row = _typed(dict(zip(header, cells)))
    if len(cells) != len(header) or row.get('round') != len(found):
      break
    found.append(row)
  return header, found


def _is_time(column: str) -> bool:
  return column.endswith('_seconds')


def _typed(texts: Mapping[str, str]) -> dict[str, Any]:
  return {
    name: text if name in _TEXT else _number(text)
    for name, text in texts.items()
    if text
  }


def _number(text: str) -> int | float | str:
  for kind in (int, float):
    with contextlib.suppress(ValueError):
      return kind(text)
  return text


def columns(rows: Table) -> list[str]:
  """Returns the columns of all rows, in their order."""
  return list(dict.fromkeys(name for row in rows for name in row))


def _text(value) -> str:
  if value is None or value != value:
    return '-'
  return f'{value:.4f}' if isinstance(value, float) else str(value)
