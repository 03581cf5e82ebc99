"""Memories of clients that stay on their nodes.

A memory counts only if the update that came with it was accepted, and the node
hears of that with its next order. So what a training leaves is put beside what
counts, and one of them is taken once the server says which.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import pathlib
from typing import Any

from bfl_tf import trees
from bfl_tf.config import config

# What may differ between the parts of one run that was resumed.
_SAME_RUN = (*config.MACHINE_FIELDS, 'num_rounds')


@dataclasses.dataclass(frozen=True)
class Kept:
  """A directory with a file for each round whose memory may count."""

  path: pathlib.Path

  @classmethod
  def of(cls, directory: str, run: str, flags: str, client: int) -> 'Kept':
    """Returns what a node keeps for a client of a run.

    Args:
      directory: Directory of the node.
      run: Name of the run, as of `messages.Order`.
      flags: Flags of the run, as of `messages.Order`.
      client: Number of the client.

    Raises:
      ValueError: there is no directory to keep it in.
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
    """Returns the memory that counts, and forgets what never will.

    Args:
      accepted: the round whose update the server took in last; -1 for none.
      oldest: the first round that the server may begin again, from its
        checkpoint: what counted there is kept.

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
    # What counted when the oldest round began, and since.
    first = max((n for n in found if n <= accepted and n < oldest), default=-1)
    for number, path in found.items():
      if not first <= number <= accepted:
        path.unlink()
    return trees.load(found[accepted]) if accepted >= 0 else {}

  def put(self, round_index: int, memory: Mapping[str, Any]) -> None:
    """Keeps what a round's training leaves, until the server has decided."""
    self.path.mkdir(parents=True, exist_ok=True)
    trees.save(self.path / f'round-{round_index}.npz', memory)
