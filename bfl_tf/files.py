"""Atomic file replacement, and reading of .npz and .json files."""

from collections.abc import Container, Iterator, Sequence
import contextlib
import csv
import json
import os
import pathlib
import threading
import tokenize
from typing import Any
import zipfile
import zlib

import numpy as np

# Errors that reading a damaged file may raise. MemoryError is one of them,
# because the damaged header of an .npz may declare a huge array.
_UNREADABLE = (
  AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
  SyntaxError, TypeError, ValueError, csv.Error, tokenize.TokenError,
  zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class UnreadableError(ValueError):
  """A file is damaged."""


@contextlib.contextmanager
def reading(path: str | os.PathLike, remedy: str = '') -> Iterator[None]:
  """Turns an error of a damaged file into one line.

  Raises:
    FileNotFoundError: There is no such file.
    PermissionError: The file may not be read.
    UnreadableError: The block raised another error.
  """
  try:
    yield
  except (FileNotFoundError, PermissionError):
    raise
  except _UNREADABLE as error:
    raise UnreadableError(
      f'{os.fspath(path)} is damaged: {remedy or "restore it from a copy"}.'
    ) from error


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary path; its file then replaces `path` atomically.

  At any time, `path` is either the complete old file or the complete new one.
  """
  mark = f'{os.getpid()}-{threading.get_ident()}'
  new = path.with_name(f'.{path.name}.{mark}.tmp')
  try:
    yield new
    with new.open('rb') as file:
      # Sync before the rename, so that a power failure leaves either file.
      os.fsync(file.fileno())
    os.replace(new, path)
  finally:
    new.unlink(missing_ok=True)


def write_text(path: pathlib.Path, text: str, mode: int = 0o666) -> None:
  """Writes a text file with these permissions atomically."""
  with replacing(path) as new:
    new.touch(mode)
    new.write_text(text, 'utf-8')


def read_npz(
  path: str | os.PathLike, names: Container[str] | None = None
) -> dict[str, np.ndarray]:
  """Returns the arrays of a file by name.

  Args:
    names: Names of the arrays to read; None for all. Missing names are ignored.
  """
  # An .npy has no attribute `files`.
  with reading(path), np.load(path, allow_pickle=False) as archive:
    return {
      name: archive[name]
      for name in archive.files
      if names is None or name in names
    }


def read_json(path: pathlib.Path, keys: Sequence[str] = ()) -> dict[str, Any]:
  """Returns the object in a `.json` file, which must have these keys."""
  with reading(path):
    content = json.loads(path.read_text('utf-8'))
    return {**content, **{key: content[key] for key in keys}}
