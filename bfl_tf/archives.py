"""Arrays of an .npz file, which may be damaged in any way."""

from collections.abc import Container
import os
import tokenize
import zipfile
import zlib

import numpy as np

# What reading such a file may raise.
UNREADABLE = (
  AttributeError, EOFError, OSError, RuntimeError, SyntaxError, TypeError,
  ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read(
  path: str | os.PathLike, names: Container[str] | None = None
) -> dict[str, np.ndarray]:
  """Returns the arrays of a file by name.

  Args:
    path: the file.
    names: which of them; all where None. What it lacks is not among them.

  Raises:
    ValueError: it is no such file, or a damaged one; says which it is.
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
  # A damaged header may promise more than memory holds.
  except (*UNREADABLE, MemoryError) as error:
    raise ValueError(
      f'{os.fspath(path)} cannot be read as an .npz file: {error}.'
    ) from error
