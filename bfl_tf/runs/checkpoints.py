"""The checkpoint of a run: its last saved state, an `.npz` file.

The memories of clients are in a file of their own (`memories`). Both files
contain the digest of the run's flags.
"""

import pathlib

from bfl_tf import files, run_files, trees, weights
from bfl_tf.federation.state import State
from bfl_tf.runs import flags_file
from bfl_tf.runs import memories as memories_lib


def save(state: State, directory: pathlib.Path) -> State:
  """Saves the state and replaces the previous one.

  Returns:
    The state, whose memories are now read from the directory.

  Raises:
    OSError: The checkpoint could not be written; the previous one is kept.
  """
  directory.mkdir(exist_ok=True)
  path = directory / run_files.MEMORIES
  run = flags_file.digest(directory)
  memories = memories_lib.store(path, state.memories, run)
  index = {} if memories is None else memories.index()
  tree = {**state._asdict(), 'memories': index, 'run': run}
  trees.save(directory / run_files.CHECKPOINT, tree)
  return state._replace(memories={} if memories is None else memories)


def restore(directory: pathlib.Path) -> State | None:
  """Returns the saved state, or None without a checkpoint.

  Raises:
    files.UnreadableError: A file is damaged, missing or of another run.
  """
  if not (directory / run_files.CHECKPOINT).exists():
    return None
  remedy = (
    f'Restore it (and {run_files.MEMORIES}, if any) from one copy, or delete '
    f'{directory} to train again.'
  )
  try:
    tree = trees.load(directory / run_files.CHECKPOINT)
  except files.UnreadableError as error:
    raise files.UnreadableError(f'{error} {remedy}') from error
  run = flags_file.digest(directory)
  if str(tree.get('run')) != run:
    raise files.UnreadableError(
      f'{directory / run_files.CHECKPOINT} is the checkpoint of another run. '
      f'{remedy}'
    )
  path, index = directory / run_files.MEMORIES, tree.get('memories')
  return State(
    round=int(tree['round']),
    model=weights.Weights(**tree['model']),
    slots=tree.get('slots', {}),
    memories=memories_lib.Memories.read(path, index, run) if index else {},
  )
