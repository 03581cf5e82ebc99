"""Atomic file replacement, and reading of .npz and .json files."""

from collections.abc import Container, Iterator
import contextlib
import csv
import json
import os
import pathlib
import threading
import tokenize
import types
import typing
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

  Args:
    remedy: Advice to the user; by default, to restore the file.

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

  Raises:
    FileNotFoundError: There is no such file.
    UnreadableError: The file is damaged or of another format.
  """
  # An .npy has no attribute `files`.
  with reading(path), np.load(path, allow_pickle=False) as archive:
    return {
      name: archive[name]
      for name in archive.files
      if names is None or name in names
    }


def read_json(path: pathlib.Path, hint: Any) -> Any:
  """Returns the content of a `.json` file.

  Args:
    hint: Type of the content, such as `dict[str, float]`. A class with
      annotations is a dict of its fields, or a list of their values.

  Raises:
    FileNotFoundError: There is no such file.
    UnreadableError: The file is damaged.
  """
  with reading(path):
    content = json.loads(path.read_text('utf-8'))
    if not _has_type(content, hint):
      raise TypeError(hint)
    return content


def _has_type(value, hint) -> bool:
  origin, of = typing.get_origin(hint), typing.get_args(hint)
  if hint is Any:
    return True
  if hint in (bool, int, str, type(None)):
    return type(value) is hint
  if hint is float:
    return type(value) in (int, float)
  if origin in (types.UnionType, typing.Union):
    return any(_has_type(value, each) for each in of)
  if origin is dict:
    return isinstance(value, dict) and all(
      _has_type(each, of[1]) for each in value.values()
    )
  if origin is tuple and of[-1] is ...:
    return isinstance(value, list) and all(_has_type(v, of[0]) for v in value)
  # A tuple of this length, or a class.
  hints = {} if origin is tuple else typing.get_type_hints(hint)
  if isinstance(value, dict):
    return all(_has_type(value.get(k), hints[k]) for k in hints) and bool(hints)
  each = tuple(hints.values()) or of
  same = isinstance(value, list) and len(value) == len(each)
  return same and all(map(_has_type, value, each))
