"""The checkpoint of a run: its last saved state, an `.npz` file.

The memories of clients are in a file of their own (`memories`). Both files
contain the digest of the run's flags, and the checkpoint that of `task.json`.
"""

import pathlib

from bfl_tf import files, run_files, trees, weights
from bfl_tf.declare import user_code
from bfl_tf.federation.state import State
from bfl_tf.runs import memories as memories_lib
from bfl_tf.runs import run_config


def save(state: State, directory: pathlib.Path) -> State:
  """Saves the state and replaces the previous one.

  Returns:
    The state, whose memories are now read from the directory.
  """
  directory.mkdir(exist_ok=True)
  path = directory / run_files.MEMORIES
  marks = _marks(directory)
  memories = memories_lib.store(path, state.memories, marks['run'])
  index = {} if memories is None else memories.index()
  tree = {**state._asdict(), 'memories': index, **marks}
  trees.save(directory / run_files.CHECKPOINT, tree)
  return state._replace(memories={} if memories is None else memories)


def restore(directory: pathlib.Path) -> State | None:
  """Returns the saved state, or None without a checkpoint."""
  file, path = (
    directory / name for name in (run_files.CHECKPOINT, run_files.MEMORIES)
  )
  if not file.exists():
    return None
  marks = _marks(directory)
  with files.reading(file, run_files.remedy(directory)):
    tree = trees.load(file)
    if any(str(tree.get(name, mark)) != mark for name, mark in marks.items()):
      raise ValueError('the checkpoint of another run')
    number, model = int(tree['round']), weights.Weights(**tree['model'])
  index, slots = tree.get('memories'), tree.get('slots', {})
  read = memories_lib.Memories.read
  memories = read(path, index, marks['run']) if index else {}
  return State(number, model, slots, memories)


def _marks(directory) -> dict[str, str]:
  """Returns digests of the run and, if the file exists, of its task."""
  path = directory / run_files.TASK
  task = {'task': user_code.digest_of(path)} if path.is_file() else {}
  return {'run': run_config.digest(directory), **task}
