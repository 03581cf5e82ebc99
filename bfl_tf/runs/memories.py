"""The memories of clients on disk, in one file next to the checkpoint.

Each client has two places in the file. The checkpoint refers to one of them,
and a changed memory is written to the other before the next checkpoint. So the
file agrees with the checkpoint at any time. Places of clients that have never
trained take no space on file systems with sparse files.

The file begins with the digest of its run and the number of writes. The
checkpoint contains both, and the digest of each memory. So a file that does not
belong to the checkpoint, or is damaged, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import struct
from typing import Any

import numpy as np

from bfl_tf import files, run_files, trees

_HEADER = struct.Struct('<16sq')
# Name, shape and type of each array of a memory.
Layout = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Memories(Mapping[int, Any]):
  """Memories by client, which are read from the file when they are needed.

  Attributes:
    layout: Arrays of a memory, the same for all clients.
    places: `[num_clients]` int8: which place holds the memory of a client, 0 or
      1, and -1 if none does.
    digests: `[num_clients]` uint64, of the memories.
  """

  path: pathlib.Path
  layout: Layout
  places: np.ndarray
  digests: np.ndarray
  run: str
  writes: int = 0
  changed: Mapping[int, Any] = dataclasses.field(default_factory=dict)

  @classmethod
  def read(
    cls, path: pathlib.Path, index: Mapping[str, Any], run: str
  ) -> Memories:
    """Returns the memories to which a checkpoint refers by `index`."""
    with files.reading(path, run_files.remedy(path.parent)):
      layout = tuple(
        (name, tuple(shape), dtype)
        for name, shape, dtype in json.loads(str(index['layout']))
      )
      places, digests = index['places'], index['digests']
      memories = cls(path, layout, places, digests, run, int(index['writes']))
    memories._check()
    return memories

  def index(self) -> dict[str, Any]:
    """Returns the arrays that a checkpoint contains."""
    layout = np.array(json.dumps(self.layout))
    arrays = {'places': self.places, 'digests': self.digests}
    return {'layout': layout, 'writes': self.writes, **arrays}

  def _check(self):
    """Checks run, number of writes and length of the file."""
    if not self.path.is_file():
      raise self._error('is missing')
    with self.path.open('rb') as file:
      header = file.read(_HEADER.size)
      length = file.seek(0, os.SEEK_END)
    # A killed process may have written once more than the checkpoint contains.
    expected = [self._header(self.writes + more) for more in (0, 1)]
    if header not in expected:
      raise self._error('does not belong to the checkpoint')
    last = max(np.flatnonzero(self.places >= 0), default=-1)
    if last >= 0 and length < self._offset(last, self.places[last] + 1):
      raise self._error('is incomplete')

  def _header(self, writes) -> bytes:
    return _HEADER.pack(bytes.fromhex(self.run), writes)

  def _error(self, what) -> files.UnreadableError:
    remedy = run_files.remedy(self.path.parent)
    return files.UnreadableError(f'{self.path} {what}: {remedy}.')

  def __getitem__(self, client: int) -> dict[str, Any]:
    if client in self.changed:
      return self.changed[client]
    if client not in range(len(self.places)) or self.places[client] < 0:
      raise KeyError(client)
    with self.path.open('rb') as file:
      file.seek(self._offset(client, self.places[client]))
      record = file.read(self._size)
    if _digest(client, record) != self.digests[client]:
      raise self._error(f'has a damaged memory of client {client}')
    memory: dict[str, Any] = {}
    start = 0
    for name, shape, dtype in self.layout:
      array = np.frombuffer(record, dtype, math.prod(shape), start)
      trees.put(memory, name, array.reshape(shape).copy())
      start += array.nbytes
    return memory

  def __iter__(self) -> Iterator[int]:
    stored = np.flatnonzero(self.places >= 0).tolist()
    return iter(sorted({*stored, *self.changed}))

  def __len__(self) -> int:
    return sum(1 for _ in self)

  def __or__(self, new: Mapping[int, Any]) -> Memories:
    return dataclasses.replace(self, changed={**self.changed, **new})

  @property
  def _size(self) -> int:
    return sum(
      math.prod(shape) * np.dtype(dtype).itemsize
      for _, shape, dtype in self.layout
    )

  def _offset(self, client, place) -> int:
    return _HEADER.size + (2 * int(client) + int(place)) * self._size

  def write(self) -> Memories:
    """Writes the changed memories; the file keeps those of the checkpoint."""
    if not self.changed:
      return self
    last = max(self.changed)
    missing = max(0, last + 1 - len(self.places))
    places = np.pad(self.places, (0, missing), constant_values=-1)
    digests = np.pad(self.digests, (0, missing))
    self.path.touch()
    with self.path.open('r+b') as file:
      file.write(self._header(self.writes + 1))
      for client, memory in self.changed.items():
        places[client] = 1 if places[client] == 0 else 0
        arrays = dict(trees.leaves(memory))
        record = b''.join(
          np.ascontiguousarray(arrays[name], dtype).tobytes()
          for name, _, dtype in self.layout
        )
        digests[client] = _digest(client, record)
        file.seek(self._offset(client, places[client]))
        file.write(record)
      file.flush()
      os.fsync(file.fileno())
    return Memories(
      self.path, self.layout, places, digests, self.run, self.writes + 1
    )


def _digest(client, record) -> int:
  hasher = hashlib.blake2b(record, digest_size=8, key=b'%d' % client)
  return int.from_bytes(hasher.digest(), 'little')


def store(
  path: pathlib.Path, memories: Mapping[int, Any], run: str
) -> Memories | None:
  """Writes memories to a file; returns None for memories without arrays."""
  if not isinstance(memories, Memories) or memories.path != path:
    memory: Mapping[str, Any] = next(iter(memories.values()), {})
    layout = tuple(
      (name, np.shape(array), np.asarray(array).dtype.str)
      for name, array in trees.leaves(memory)
    )
    if not layout:
      return None
    none = np.zeros(0, np.int8), np.zeros(0, np.uint64)
    memories = Memories(path, layout, *none, run, changed=memories)
  return memories.write()
