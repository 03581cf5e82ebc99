"""Files that appear whole, and .npz files that may be damaged in any way."""

from collections.abc import Container, Iterator
import contextlib
import os
import pathlib
import threading
import tokenize
import zipfile
import zlib

import numpy as np

# What reading an .npz file may raise; a damaged header may promise more than
# memory holds.
_UNREADABLE = (
  AttributeError, EOFError, MemoryError, OSError, RuntimeError, SyntaxError,
  TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a place for a new file, which then takes that of `path` at once.

  Whatever happens in between, `path` is the old file or the new one.
  """
  mark = f'{os.getpid()}-{threading.get_ident()}'
  new = path.with_name(f'.{path.name}.{mark}.tmp')
  try:
    yield new
    with new.open('rb') as file:
      # On the disk before its name is: a power failure leaves either file.
      os.fsync(file.fileno())
    os.replace(new, path)
  finally:
    new.unlink(missing_ok=True)


def write_text(path: pathlib.Path, text: str) -> None:
  """Writes a text file that appears whole."""
  with replacing(path) as new:
    new.write_text(text)


def read_npz(
  path: str | os.PathLike, names: Container[str] | None = None
) -> dict[str, np.ndarray]:
  """Returns the arrays of a file by name.

  Args:
    path: the file.
    names: which of them; all where None. What it lacks is not among them.
  """
  try:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
      raise ValueError('it holds a single array')
    with archive:
      return {
        name: archive[name]
        for name in archive.files
        if names is None or name in names
      }
  except _UNREADABLE as error:
    raise ValueError(
      f'{os.fspath(path)} cannot be read as an .npz file: {error}.'
    ) from error
