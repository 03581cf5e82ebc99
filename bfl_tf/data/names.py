"""Names: what a data set's name stands for, and names that are rejected."""

from collections.abc import Iterable
import pathlib
import re
from typing import Literal

from bfl_tf.data import builtin

FILES = ('npz', 'csv')
# A "|" joins the classes of a set. A spreadsheet takes a text that begins so
# for a formula, unless it is a number.
_UNSAFE = re.compile(r'.*\||[=+@-](?![\d.]+$).', re.DOTALL)
_FUNCTION = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_]\w*')


def kind(name: str) -> Literal['builtin', 'npz', 'csv', 'function', 'tfds']:
  """Returns where a set comes from; by a file's ending, in capitals or not."""
  suffix = pathlib.PurePath(name).suffix.lower()
  if name in builtin.BUILTIN:
    return 'builtin'
  if suffix in ('.npz', '.csv'):
    return 'npz' if suffix == '.npz' else 'csv'
  return 'function' if _FUNCTION.fullmatch(name) else 'tfds'


def check_classes(names: Iterable[str]) -> None:
  """Raises a ValueError for a class that a file of predictions cannot name."""
  for name in names:
    if _UNSAFE.match(name):
      raise ValueError(
        f'the class {name!r}: rename it, because a name must not contain "|", '
        'and only a number may begin with =, +, - or @'
      )
