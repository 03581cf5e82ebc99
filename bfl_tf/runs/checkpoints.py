"""Atomic checkpoints of the state, restored by their stored shapes."""

from collections.abc import Iterator
import os
import pathlib
import re
import shutil
from typing import Any

from absl import logging
import tensorflow as tf

from bfl_tf import weights as weights_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.runs import trees

_SUFFIX = '/.ATTRIBUTES/VARIABLE_VALUE'
_OURS = re.compile(r'state-(\d+)(?:_temp|\.index|\.data-\d{5}-of-\d{5})')
_KEPT = 2


def save(state: state_lib.State, directory: pathlib.Path) -> None:
  """Saves the state, keeping the checkpoint before it too.

  What older rounds, and processes that were killed while they saved, left
  behind goes.

  Raises:
    OSError: it could not be written; the checkpoints before are still there.
  """
  tree = state._asdict()
  # On the host: an accelerator need not hold all clients' memories.
  with tf.device('/CPU:0'):
    variables = {name: tf.Variable(v) for name, v in trees.flatten(tree)}
  directory.mkdir(exist_ok=True)
  try:
    tf.train.Checkpoint(**variables).write(str(directory / _name(state.round)))
  except tf.errors.OpError as error:
    raise OSError(f'{directory}: {error.message.splitlines()[0]}') from error
  kept = [r for r in rounds(directory) if r <= state.round][:_KEPT]
  for path, number in _files(directory):
    if path.is_dir():
      shutil.rmtree(path)
    elif number not in kept:
      path.unlink()
    elif number == state.round:
      _sync(path)


def rounds(directory: pathlib.Path) -> list[int]:
  """Returns the rounds of which there are checkpoints, the newest first."""
  names = (path.name for path in directory.glob('state-*.index'))
  found = [_OURS.fullmatch(name) for name in names]
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
    path = directory / _name(number)
    try:
      return _read(path)
    except (tf.errors.OpError, ValueError, LookupError) as error:
      reason = str(error).splitlines()[0]
      logging.warning(
        'Checkpoint %s is corrupt (%s); taking the one before it.', path, reason
      )
  return None


def _name(number: int) -> str:
  return f'state-{number}'


def _files(directory: pathlib.Path) -> Iterator[tuple[pathlib.Path, int]]:
  """Yields all that a checkpoint consists of, or consisted of, by round."""
  for path in list(directory.iterdir()):
    match = _OURS.fullmatch(path.name)
    if match:
      yield path, int(match[1])


def _sync(path: pathlib.Path) -> None:
  """Waits until a file is on the disk."""
  with path.open('rb') as file:
    os.fsync(file.fileno())


def _read(path: pathlib.Path) -> state_lib.State:
  reader = tf.train.load_checkpoint(str(path))
  tree: dict[str, Any] = {'slots': {}, 'memories': {}}
  for key in reader.get_variable_to_shape_map():
    if not key.endswith(_SUFFIX) or key.startswith('save_counter'):
      continue
    trees.put(tree, key.removesuffix(_SUFFIX), reader.get_tensor(key))
  return state_lib.State(
    round=int(tree['round']),
    model=weights_lib.Weights(**tree['model']),
    slots=tree['slots'],
    memories={int(client): kept for client, kept in tree['memories'].items()},
  )
