"""Tables of rows by column: as text, and as files that appear whole."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import io
import os
import pathlib
import shutil
from typing import Any

from bfl_tf.federation import stopping

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
  try:
    temporary.write_text(text)
    os.replace(temporary, path)
  finally:
    temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(folder: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a new folder, whose files then take the place of a folder's own.

  Tables and plots of an earlier question, which this one does not ask, go; what
  else is there stays. Until all is written there, all is as it was.

  Raises:
    stopping.MachineError: something cannot be written.
  """
  scratch = folder.with_name(f'.{folder.name}.{os.getpid()}.tmp')
  try:
    scratch.mkdir()
    yield scratch
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob('*.csv'), *folder.glob('*.png')):
      if not (scratch / old.name).exists():
        old.unlink()
    for new in scratch.iterdir():
      os.replace(new, folder / new.name)
  except OSError as error:
    raise stopping.MachineError(
      f'{folder} cannot be written: {error}.'
    ) from error
  finally:
    shutil.rmtree(scratch, ignore_errors=True)


def columns(rows: Rows) -> list[str]:
  """Returns the columns of all rows, in their order."""
  return list(dict.fromkeys(name for row in rows for name in row))


def _text(value) -> str:
  if value is None or value != value:
    return '-'
  return f'{value:.4f}' if isinstance(value, float) else str(value)
