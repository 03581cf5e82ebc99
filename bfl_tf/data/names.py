"""Kinds of data set names, and rejected names of classes and sites."""

from collections.abc import Iterable
import pathlib
import re
from typing import Literal

from bfl_tf.data import builtin

FILES = ('npz', 'csv')
_SUFFIXES: dict[str, Literal['npz', 'csv']] = {
  '.npz': 'npz',
  '.csv': 'csv',
  '.tsv': 'csv',
}
# A "|" joins the classes of a prediction set. A spreadsheet reads a text that
# begins with =, +, - or @ as a formula, unless it is a number.
_UNSAFE = re.compile(r'\s*$|.*\||[=+@-](?![\d.]+$).', re.DOTALL)
_FUNCTION = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_]\w*')


def kind(name: str) -> Literal['builtin', 'npz', 'csv', 'function', 'tfds']:
  """Returns the kind of a data set; the case of file endings is ignored."""
  suffix = pathlib.PurePath(name).suffix.lower()
  if name in builtin.BUILTIN:
    return 'builtin'
  if suffix in _SUFFIXES:
    return _SUFFIXES[suffix]
  return 'function' if _FUNCTION.fullmatch(name) else 'tfds'


def check(where: str, names: Iterable[str]) -> None:
  """Raises a ValueError for a name that is unsafe in a .csv file, or repeated.

  The message begins with `where`, such as `--dataset=a.csv has the site`.
  """
  seen: set[str] = set()
  for name in names:
    if _UNSAFE.match(name) or not name.isprintable() or name in seen:
      raise ValueError(
        f'{where} {name!r}: rename it, because names must be different and '
        'printable, must not contain "|", and only a number may begin with =, '
        '+, - or @.'
      )
    seen.add(name)
