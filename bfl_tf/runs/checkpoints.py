"""Checkpoints of the state: one `.npz` file a round, of which two are kept."""

import pathlib
import re

from absl import logging

from bfl_tf import trees
from bfl_tf import weights as weights_lib
from bfl_tf.federation import state as state_lib

_NAME = re.compile(r'state-(\d+)\.npz')
_KEPT = 2


def save(state: state_lib.State, directory: pathlib.Path) -> None:
  """Saves the state, keeping the checkpoint before it too.

  What older rounds, and processes that were killed while they saved, left
  behind goes.

  Raises:
    OSError: it could not be written; the checkpoints before are still there.
  """
  directory.mkdir(exist_ok=True)
  trees.save(_path(directory, state.round), state._asdict())
  kept = [r for r in rounds(directory) if r <= state.round][:_KEPT]
  stays = {_path(directory, number) for number in kept}
  for path in set(directory.glob('*state-*')) - stays:
    path.unlink()


def rounds(directory: pathlib.Path) -> list[int]:
  """Returns the rounds of which there are checkpoints, the newest first."""
  found = [_NAME.fullmatch(path.name) for path in directory.glob('state-*')]
  return sorted((int(match[1]) for match in found if match), reverse=True)


def restore(
  directory: pathlib.Path, newest: int | None = None
) -> state_lib.State | None:
  """Returns the newest state that can be read, or None if there is none.

  A checkpoint that cannot be read is named in a warning and the one before it
  is taken: the run then plays the lost round again, to the same bits.
  """
  for number in rounds(directory):
    if newest is not None and number > newest:
      continue
    path = _path(directory, number)
    try:
      return _read(path)
    except (ValueError, LookupError, TypeError) as error:
      logging.warning(
        'Checkpoint %s is corrupt (%s); taking the one before it.', path, error
      )
  return None


def _path(directory, number) -> pathlib.Path:
  return directory / f'state-{number}.npz'


def _read(path: pathlib.Path) -> state_lib.State:
  tree = trees.load(path)
  memories = tree.get('memories', {})
  return state_lib.State(
    round=int(tree['round']),
    model=weights_lib.Weights(**tree['model']),
    slots=tree.get('slots', {}),
    memories={int(client): kept for client, kept in memories.items()},
  )
