"""Storage of client memories on their nodes.

A memory is valid only if the server accepts the update of the same round. The
next order names the last accepted round. Until then the node stores the new
memory next to the old one.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import pathlib
from typing import Any

import numpy as np

from bfl_tf import files, trees
from bfl_tf.config import config

# Flags that a resumed run may change.
_SAME_RUN = (*config.MACHINE_FIELDS, 'num_rounds')


@dataclasses.dataclass(frozen=True)
class MemoryFolder:
  """A directory with one file per round whose memory may be valid."""

  path: pathlib.Path

  @classmethod
  def of(
    cls, directory: str, run: str, flags: str, client: int
  ) -> 'MemoryFolder':
    """Returns the storage of one client in one run."""
    if not directory:
      raise ValueError(
        'a client part stores a memory on this node: start the SuperNode with '
        '--node-config \'memory="DIR"\''
      )
    names = tuple(f'--{name}=' for name in _SAME_RUN)
    lines = [line for line in flags.splitlines() if not line.startswith(names)]
    text = '\n'.join([run, *lines])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cls(pathlib.Path(directory) / digest / f'client-{client}')

  def take(self, accepted: int, oldest: int = 0) -> Mapping[str, Any]:
    """Returns the valid memory and deletes memories no longer needed.

    Args:
      accepted: Last round whose update the server accepted; -1 for none.
      oldest: First round that the server may repeat from its checkpoint; the
        memory valid at that round is not deleted.
    """
    paths = {
      int(text): path
      for path in self.path.glob('round-*.npz')
      if (text := path.stem.removeprefix('round-')).isdecimal()
    }
    if accepted >= 0 and accepted not in paths:
      raise ValueError(
        f'the memory of round {accepted} is not in {self.path}: start a new '
        'run in another --output_dir'
      )
    # The memory that was valid when the oldest round began.
    first = max((n for n in paths if n <= accepted and n < oldest), default=-1)
    for number, path in paths.items():
      if not first <= number <= accepted:
        path.unlink()
    if accepted < 0:
      return {}
    with files.reading(paths[accepted], 'start a run in another --output_dir'):
      tree = trees.load(paths[accepted])
      memory = tree.get('memory', {})
      if str(tree['digest']) != self._digest(accepted, memory):
        raise ValueError('another run, client or round, or other arrays')
    return memory

  def put(self, round_index: int, memory: Mapping[str, Any]) -> None:
    """Stores the memory of a round until the server accepts or rejects it."""
    self.path.mkdir(parents=True, exist_ok=True)
    tree = {'memory': memory, 'digest': self._digest(round_index, memory)}
    trees.save(self.path / f'round-{round_index}.npz', tree)

  def _digest(self, number, memory) -> str:
    """Returns a digest of the run, the client, the round and the memory."""
    hasher = hashlib.sha256(f'{self.path.parts[-2:]} {number}'.encode())
    for name, leaf in trees.leaves(memory):
      array = np.asarray(leaf)
      kind = f'{name} {array.dtype.str} {array.shape}'
      hasher.update(kind.encode() + array.tobytes())
    return hasher.hexdigest()
