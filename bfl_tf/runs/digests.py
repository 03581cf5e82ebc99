"""Whether the files of a run are as they were written."""

from collections.abc import Collection, Iterable, Mapping
import json
import os
import pathlib
from typing import Any
import zlib

NAME = '.digests'


class Digests:
  """A file beside others: of each a checksum, and of a table's every line.

  A checksum is written before what it is of: whoever is killed in between
  leaves the file before, whose checksum is there too.
  """

  def __init__(self, folder: pathlib.Path):
    """Keeps checksums of the files in a folder."""
    self._folder = folder

  def expect(self, files: Mapping[str, pathlib.Path]) -> None:
    """Writes down what is about to be in the folder.

    Args:
      files: by the name that each will have there, where it is now.
    """
    if not files:
      return
    known = self._known()
    for name, path in files.items():
      before = _of(self._folder / name)
      # What is not as it was written is not taken for good by being there.
      if name in known and not self._has(known[name], before):
        before = {}
      known[name] = {
        kind: sorted({*sums, *before.get(kind, ())})
        for kind, sums in _of(path).items()
      }
    self._write(known)

  def forget(self, names: Iterable[str]) -> None:
    """No longer expects files, and none in a folder that is named."""
    gone, known = tuple(names), self._known()
    kept = {n: v for n, v in known.items() if not n.startswith(gone)}
    if kept != known:
      self._write(kept)

  @property
  def names(self) -> Collection[str]:
    """Of the files that are expected."""
    return self._known().keys()

  def changed(self, names: Collection[str] | None = None) -> list[str]:
    """Returns the names of files that are missing or not as written.

    Args:
      names: of those to be looked at; all if None.
    """
    return [
      name
      for name, sums in self._known().items()
      if (names is None or name in names)
      and not self._has(sums, _of(self._folder / name))
    ]

  def lines(self, name: str) -> frozenset[str] | None:
    """Returns the checksums of a table's lines; None if none are known."""
    sums = self._known().get(name)
    return frozenset(sums['lines']) if sums else None

  def _has(self, sums, found):
    return bool(sums and found) and set(found['whole']) <= set(sums['whole'])

  def _known(self) -> dict[str, Mapping[str, Any]]:
    """What is written down; nothing if that cannot be trusted."""
    try:
      first, _, rest = (self._folder / NAME).read_text().partition('\n')
    except (OSError, UnicodeDecodeError):
      return {}
    return json.loads(rest) if first == line_sum(rest) else {}

  def _write(self, known):
    text = json.dumps(known)
    temporary = self._folder / f'{NAME}.tmp'
    temporary.write_text(f'{line_sum(text)}\n{text}')
    with temporary.open('rb') as file:
      os.fsync(file.fileno())
    os.replace(temporary, self._folder / NAME)


def line_sum(line: str | bytes) -> str:
  """Returns the checksum of a line, its end left out."""
  data = line.encode() if isinstance(line, str) else line
  return f'{zlib.crc32(data.rstrip()):08x}'


def _of(path):
  """Checksums by kind; none where there is no file."""
  try:
    data = path.read_bytes()
  except OSError:
    return {}
  lines = data.splitlines() if '.csv' in path.name else []
  return {
    'whole': [f'{zlib.crc32(data):08x}'],
    'lines': [line_sum(line) for line in lines],
  }
