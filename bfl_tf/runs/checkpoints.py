"""The checkpoint of a run: its last saved state, an `.npz` file."""

import pathlib

from bfl_tf import run_files, trees, weights
from bfl_tf.federation.state import State


def save(state: State, directory: pathlib.Path) -> None:
  """Saves the state and replaces the previous one.

  Raises:
    OSError: The checkpoint could not be written; the previous one is kept.
  """
  directory.mkdir(exist_ok=True)
  trees.save(directory / run_files.CHECKPOINT, state._asdict())


def restore(directory: pathlib.Path) -> State | None:
  """Returns the saved state, or None without a checkpoint.

  Raises:
    ValueError: The file cannot be read.
  """
  if not (directory / run_files.CHECKPOINT).exists():
    return None
  tree = trees.load(directory / run_files.CHECKPOINT)
  memories = tree.get('memories', {})
  return State(
    round=int(tree['round']),
    model=weights.Weights(**tree['model']),
    slots=tree.get('slots', {}),
    memories={int(client): kept for client, kept in memories.items()},
  )
