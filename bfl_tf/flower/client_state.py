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

from bfl_tf import trees
from bfl_tf.config import config

# Flags that a resumed run may change.
_SAME_RUN = (*config.MACHINE_FIELDS, 'num_rounds')


@dataclasses.dataclass(frozen=True)
class Kept:
  """A directory with one file per round whose memory may be valid."""

  path: pathlib.Path

  @classmethod
  def of(cls, directory: str, run: str, flags: str, client: int) -> 'Kept':
    """Returns the storage of one client in one run.

    Args:
      directory: Directory of the node.
      run: Name of the run, as in `messages.Order`.
      flags: Flags of the run, as in `messages.Order`.
      client: Number of the client.

    Raises:
      ValueError: The node has no directory for memories.
    """
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

    Raises:
      ValueError: The memory is not on this node.
    """
    found = {
      int(path.stem.removeprefix('round-')): path
      for path in self.path.glob('round-*.npz')
    }
    if accepted >= 0 and accepted not in found:
      raise ValueError(
        f'the memory of round {accepted} is not in {self.path}: start a new '
        'run in another --output_dir'
      )
    # The memory that was valid when the oldest round began.
    first = max((n for n in found if n <= accepted and n < oldest), default=-1)
    for number, path in found.items():
      if not first <= number <= accepted:
        path.unlink()
    return trees.load(found[accepted]) if accepted >= 0 else {}

  def put(self, round_index: int, memory: Mapping[str, Any]) -> None:
    """Stores the memory of a round until the server accepts or rejects it."""
    self.path.mkdir(parents=True, exist_ok=True)
    trees.save(self.path / f'round-{round_index}.npz', memory)
