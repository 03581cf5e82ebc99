"""Tables as text and as CSV files.

A row is a mapping of columns to values, without missing values. `Rows` is the
growing table of a run's rounds. Other tables are written once.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import io
import os
import pathlib
from typing import Any

from bfl_tf import files, metrics, run_files

Row = Mapping[str, Any]
Table = Sequence[Row]

# Text columns whose values may look like numbers.
_TEXT = ('rejected', 'rejected_reasons')


def table(rows: Table) -> str:
  """Returns rows as aligned text, with dashes for missing values."""

  def text(value):
    if value is None or value != value:
      return '-'
    return metrics.as_text(value) if isinstance(value, float) else str(value)

  names = columns(rows)
  lines = [names] + [[text(row.get(name)) for name in names] for row in rows]
  widths = [max(map(len, cells)) for cells in zip(*lines)]
  return '\n'.join(
    '  '.join(
      cell.rjust(width) if at else cell.ljust(width)
      for at, (cell, width) in enumerate(zip(line, widths))
    )
    for line in lines
  )


def write_csv(path: pathlib.Path, rows: Table) -> None:
  """Writes a header and rows, with empty cells for missing values."""
  text = io.StringIO()
  writer = csv.DictWriter(text, columns(rows), restval='', lineterminator='\n')
  writer.writeheader()
  writer.writerows(rows)
  files.write_text(path, text.getvalue())


@contextlib.contextmanager
def cleared(folder: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a folder after removing its tables, plots and scores.

  Other files stay. `scores.json` is removed first and must be written last, so
  that its existence means that all files are complete.
  """
  folder.mkdir(exist_ok=True)
  (folder / run_files.SCORES).unlink(missing_ok=True)
  for kind in ('csv', 'png', 'html'):
    for old in folder.glob(f'*.{kind}'):
      old.unlink()
  yield folder


class Rows(list[dict[str, Any]]):
  """The rows of `metrics.csv`, one per round from round 0.

  Added rows and rows read back have the same types: a text that looks like a
  number becomes one.
  """

  def __init__(self, path: pathlib.Path):
    """Creates an empty table; `add` or `resume` changes the file."""
    super().__init__()
    self._path = path
    self._columns: list[str] = []

  def resume(self, rounds: int) -> None:
    """Reads the rows up to round `rounds` and removes later rows."""
    self._columns, rows = _read(self._path)
    if len(rows) <= rounds:
      remedy = run_files.remedy(self._path.parent)
      raise files.UnreadableError(
        f'{self._path} has no row of round {len(rows)}: {remedy}.'
      )
    self[:] = rows[: rounds + 1]
    self._rewrite()

  def add(self, row: Row) -> None:
    """Appends a row to the file and flushes it to the disk."""
    texts = {k: '' if v is None else str(v) for k, v in row.items()}
    self.append(_typed(texts))
    new = [name for name in row if name not in self._columns]
    if new:
      # Times are the least important columns, so they come last.
      self._columns = sorted(
        [*self._columns, *new], key=lambda name: name.endswith('_seconds')
      )
      return self._rewrite()
    with self._path.open('a', newline='', encoding='utf-8') as file:
      csv.DictWriter(file, self._columns, restval='').writerow(self[-1])
      file.flush()
      os.fsync(file.fileno())

  def _rewrite(self) -> None:
    with (
      files.replacing(self._path) as path,
      path.open('w', newline='', encoding='utf-8') as file,
    ):
      writer = csv.DictWriter(file, self._columns, restval='')
      writer.writeheader()
      writer.writerows(self)


def read(path: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the rows of a `metrics.csv` from round 0 to the first missing one.

  An incomplete last line is ignored.
  """
  return _read(path)[1]


def _read(path) -> tuple[list[str], list[dict[str, Any]]]:
  try:
    text = path.read_text('utf-8')
  except (FileNotFoundError, UnicodeDecodeError):
    return [], []
  whole = io.StringIO(text[: text.rfind('\n') + 1])
  header, *table = list(csv.reader(whole)) or [[]]
  rows: list[dict[str, Any]] = []
  for cells in table:
    row = _typed(dict(zip(header, cells)))
    whole_row = len(cells) == len(header) and row.get('round') == len(rows)
    # A score that is no number is damaged, and so missing.
    if not whole_row or any(
      isinstance(row[name], str) for name in row if metrics.find(name)
    ):
      break
    rows.append(row)
  return header, rows


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
  """Returns the columns of all rows, in the order of first occurrence."""
  return list(dict.fromkeys(name for row in rows for name in row))
