"""The file that a binary writes, which must take no other's place."""

import os
import pathlib


def checked(output: str, suffix: str, *inputs: str) -> pathlib.Path:
  """Returns the path of an `--output` that can be written.

  Args:
    output: what the flag said.
    suffix: that it must have; any if empty.
    *inputs: what is read, files or not.

  Raises:
    ValueError: it is there and no file, or it is one of those read.
  """
  path, flag = pathlib.Path(output), f'--output={output}'
  if path.suffix != suffix and suffix:
    raise ValueError(f'{flag} must end in {suffix}.')
  if path.exists() and not path.is_file():
    raise ValueError(f'{flag} cannot be written: name a file.')
  for each in inputs:
    if path.exists() and os.path.exists(each) and path.samefile(each):
      raise ValueError(f'{flag} is read from too: name another file.')
  return path
