"""Tables of rows by column: as text, and as files that appear whole."""

from collections.abc import Mapping, Sequence
import csv
import io
import os
import pathlib
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def table(rows: Rows) -> str:
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


def write_csv(path: pathlib.Path, rows: Rows) -> None:
  """Writes rows below a header; an empty cell where there is no value."""
  text = io.StringIO()
  writer = csv.DictWriter(text, columns(rows), restval='', lineterminator='\n')
  writer.writeheader()
  writer.writerows(rows)
  write_text(path, text.getvalue())


def write_text(path: pathlib.Path, text: str) -> None:
  """Writes beside the file, then moves over it."""
  temporary = path.with_name(f'.{path.name}.tmp')
  temporary.write_text(text)
  os.replace(temporary, path)


def columns(rows: Rows) -> list[str]:
  """Returns the columns of all rows, in their order."""
  return list(dict.fromkeys(name for row in rows for name in row))


def _text(value) -> str:
  if value is None or value != value:
    return '-'
  return f'{value:.4f}' if isinstance(value, float) else str(value)
