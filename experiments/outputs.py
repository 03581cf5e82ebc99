"""The file that a binary writes, which must take no other's place."""

import os
import pathlib

from bfl_tf.runs import digests, promises

# Of a run: what writes them makes room by removing files.
_FOLDERS = ('checkpoints', 'doubt', 'online', 'plots', 'sites', 'tensorboard')


def checked(
  output: str, suffix: str, *inputs: str, run: str | os.PathLike
) -> pathlib.Path:
  """Returns the path of an `--output` that can be written.

  Args:
    output: what the flag said.
    suffix: that it must have; any if empty.
    *inputs: what is read, files or not.
    run: the directory of a run, which may hold it too, but not in place of a
      file of its own, nor in a folder of its own, nor as one.

  Raises:
    ValueError: it is there and no file, it is one of those read, or of the run.
  """
  path, flag = pathlib.Path(output), f'--output={output}'
  if path.suffix != suffix and suffix:
    raise ValueError(f'{flag} must end in {suffix}.')
  if path.exists() and not path.is_file():
    raise ValueError(f'{flag} cannot be written: name a file.')
  for each in inputs:
    if path.exists() and os.path.exists(each) and path.samefile(each):
      raise ValueError(f'{flag} is read from too: name another file.')
  folder = pathlib.Path(run)
  own = (digests.NAME, promises.FILE, *digests.Digests(folder).names)
  place = path.resolve()
  if place in {(folder / name).resolve() for name in own}:
    raise ValueError(f"{flag} is a file of the run's own: name another file.")
  folders = {(folder / name).resolve() for name in _FOLDERS}
  if folders & {place, *place.parents}:
    raise ValueError(
      f"{flag} is a folder of the run's own, or in one: name another."
    )
  return path
