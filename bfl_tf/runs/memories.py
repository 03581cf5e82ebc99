"""The memories of clients on disk, in one file next to the checkpoint.

Each client has two places in the file. The checkpoint refers to one of them,
and a changed memory is written to the other before the next checkpoint. So the
file agrees with the checkpoint at any time. Places of clients that have never
trained take no space on file systems with sparse files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import json
import math
import os
import pathlib
from typing import Any

import numpy as np

from bfl_tf import trees

# Name, shape and type of each array of a memory.
Layout = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Memories(Mapping[int, Any]):
  """Memories by client, which are read from the file when they are needed.

  Attributes:
    path: Path of the file.
    layout: Arrays of a memory, the same for all clients.
    places: `[num_clients]` int8: which place holds the memory of a client, 0 or
      1, and -1 if none does.
    changed: Memories since the last `write`, by client.
  """

  path: pathlib.Path
  layout: Layout
  places: np.ndarray
  changed: Mapping[int, Any] = dataclasses.field(default_factory=dict)

  @classmethod
  def read(cls, path: pathlib.Path, index: Mapping[str, Any]) -> Memories:
    """Returns the memories to which a checkpoint refers by `index`."""
    layout = tuple(
      (name, tuple(shape), dtype)
      for name, shape, dtype in json.loads(str(index['layout']))
    )
    return cls(path, layout, index['places'])

  def index(self) -> dict[str, np.ndarray]:
    """Returns the arrays that a checkpoint contains."""
    return {'layout': np.array(json.dumps(self.layout)), 'places': self.places}

  def __getitem__(self, client: int) -> dict[str, Any]:
    if client in self.changed:
      return self.changed[client]
    if client not in range(len(self.places)) or self.places[client] < 0:
      raise KeyError(client)
    with self.path.open('rb') as file:
      file.seek(self._offset(client, self.places[client]))
      record = file.read(self._size)
    if len(record) < self._size:
      raise ValueError(
        f'{self.path} ends before the memory of client {client}.'
      )
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
    return (2 * client + int(place)) * self._size

  def write(self) -> Memories:
    """Writes the changed memories; the file keeps those of the checkpoint.

    Raises:
      OSError: The file could not be written.
    """
    if not self.changed:
      return self
    last = max(self.changed)
    missing = max(0, last + 1 - len(self.places))
    places = np.pad(self.places, (0, missing), constant_values=-1)
    self.path.touch()
    with self.path.open('r+b') as file:
      for client, memory in self.changed.items():
        places[client] = 1 if places[client] == 0 else 0
        file.seek(self._offset(client, places[client]))
        arrays = dict(trees.leaves(memory))
        for name, _, dtype in self.layout:
          file.write(np.ascontiguousarray(arrays[name], dtype).tobytes())
      file.flush()
      os.fsync(file.fileno())
    return Memories(self.path, self.layout, places)


def store(path: pathlib.Path, memories: Mapping[int, Any]) -> Memories | None:
  """Writes memories to a file; returns None for memories without arrays."""
  if not isinstance(memories, Memories) or memories.path != path:
    memory: Mapping[str, Any] = next(iter(memories.values()), {})
    layout = tuple(
      (name, np.shape(array), np.asarray(array).dtype.str)
      for name, array in trees.leaves(memory)
    )
    if not layout:
      return None
    memories = Memories(path, layout, np.zeros(0, np.int8), memories)
  return memories.write()
