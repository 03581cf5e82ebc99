"""Atomic checkpoints of the state, restored by their stored shapes."""

from collections.abc import Mapping
import pathlib
from typing import Any

from absl import logging
import numpy as np
import tensorflow as tf

from bfl_tf import weights as weights_lib
from bfl_tf.federation import state as state_lib

_SUFFIX = '/.ATTRIBUTES/VARIABLE_VALUE'
_SEPARATOR = '|'


def save(state: state_lib.State, directory: pathlib.Path) -> None:
  """Saves the state, keeping the checkpoint before it too."""
  tree = state._asdict()
  variables = {name: tf.Variable(value) for name, value in _flatten(tree)}
  manager = tf.train.CheckpointManager(
    tf.train.Checkpoint(**variables),
    str(directory),
    max_to_keep=2,
    checkpoint_name='state',
  )
  manager.save(checkpoint_number=state.round)


def restore(directory: pathlib.Path) -> state_lib.State | None:
  """Returns the newest state that can be read, or None if there is none.

  A checkpoint that cannot be read is named in a warning and the one before it
  is taken: the run then plays the lost round again, to the same bits.
  """
  paths = [path.with_suffix('') for path in directory.glob('state-*.index')]
  for path in sorted(paths, key=lambda p: -int(p.name.split('-')[1])):
    try:
      return _read(path)
    except (tf.errors.OpError, ValueError, LookupError) as error:
      reason = str(error).splitlines()[0]
      logging.warning(
        'Checkpoint %s is corrupt (%s); taking the one before it.', path, reason
      )
  return None


def _read(path: pathlib.Path) -> state_lib.State:
  reader = tf.train.load_checkpoint(str(path))
  tree: dict[str, Any] = {'slots': {}, 'memories': {}}
  for key in reader.get_variable_to_shape_map():
    if not key.endswith(_SUFFIX) or key.startswith('save_counter'):
      continue
    *parents, leaf = key.removesuffix(_SUFFIX).split(_SEPARATOR)
    branch = tree
    for parent in parents:
      branch = branch.setdefault(parent, {})
    branch[leaf] = reader.get_tensor(key)
  return state_lib.State(
    round=int(tree['round']),
    model=weights_lib.Weights(**tree['model']),
    slots=tree['slots'],
    memories={int(client): kept for client, kept in tree['memories'].items()},
  )


def _flatten(tree, prefix=''):
  for key, value in tree.items():
    name = f'{prefix}{key}'
    if hasattr(value, '_asdict'):
      value = value._asdict()
    if isinstance(value, Mapping):
      yield from _flatten(value, name + _SEPARATOR)
    else:
      yield name, np.asarray(value)
