"""What the name of a data set, as a flag has it, says that it is."""

import pathlib
import re
from typing import Literal

from bfl_tf.datasets import builtin

FILES = ('npz', 'csv')
_FUNCTION = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_]\w*')


def kind(name: str) -> Literal['builtin', 'npz', 'csv', 'function', 'tfds']:
  """Returns where a set comes from; by a file's ending, in capitals or not."""
  suffix = pathlib.PurePath(name).suffix.lower()
  if name in builtin.BUILTIN:
    return 'builtin'
  if suffix in ('.npz', '.csv'):
    return 'npz' if suffix == '.npz' else 'csv'
  return 'function' if _FUNCTION.fullmatch(name) else 'tfds'
