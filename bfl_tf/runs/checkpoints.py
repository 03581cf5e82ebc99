"""The checkpoint of a run: its newest state that is saved, an `.npz` file."""

import pathlib

from bfl_tf import run_files, trees
from bfl_tf import weights as weights_lib
from bfl_tf.federation import state as state_lib


def save(state: state_lib.State, directory: pathlib.Path) -> None:
  """Saves the state in place of the one before.

  Raises:
    OSError: it could not be written; the one before is still there.
  """
  directory.mkdir(exist_ok=True)
  trees.save(directory / run_files.CHECKPOINT, state._asdict())


def restore(directory: pathlib.Path) -> state_lib.State | None:
  """Returns the state, or None if none is saved.

  Raises:
    ValueError: its file cannot be read.
  """
  if not (directory / run_files.CHECKPOINT).exists():
    return None
  tree = trees.load(directory / run_files.CHECKPOINT)
  memories = tree.get('memories', {})
  return state_lib.State(
    round=int(tree['round']),
    model=weights_lib.Weights(**tree['model']),
    slots=tree.get('slots', {}),
    memories={int(client): kept for client, kept in memories.items()},
  )
