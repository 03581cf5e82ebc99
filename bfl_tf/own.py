"""Anybody's own code, `package.module:name`: called, described, told apart.

What it raises is theirs to mend: one line of ours names the flag, and their
traceback is chained to it.
"""

from collections.abc import Callable
import hashlib
import importlib
import pathlib
from typing import Any

# What user-supplied code may raise: its sys.exit must not end a run in silence.
ERRORS = (Exception, SystemExit)


class RaisedError(ValueError):
  """Something of anybody's own raised; their exception is the cause."""


def call(what: str, function: Callable, *arguments: Any) -> Any:
  """Calls a thing of ours or of anybody's own; what is wrong is one line."""
  if ':' not in what:
    return function(*arguments)
  try:
    return function(*arguments)
  except ERRORS as error:
    raise RaisedError(f'{what} raised {describe(error)}.') from error


def describe(error: BaseException) -> str:
  """Returns an exception's type and what it says, in one line."""
  first, *others = str(error).strip().splitlines() or ['']
  # What went wrong in a traced function is said last, as a rule with its type.
  said = others[-1] if others and first.startswith('in user code') else first
  kind = f'{type(error).__name__}: '
  return kind + said.strip().removeprefix(kind)


def digest(name: str) -> str | None:
  """Returns a digest of the file that has a thing.

  Returns:
    Hexadecimals, as they were when they were first asked for since the module
    was imported, however it is edited later; None of what has no file.
  """
  try:
    module = importlib.import_module(name.partition(':')[0])
    found = digest_of(pathlib.Path(str(module.__file__)))
    # A module that is loaded again has a new spec; a script has none.
    return vars(module.__spec__ or module).setdefault('bfl_tf_digest', found)
  except (ImportError, OSError, AttributeError):
    return None


def digest_of(path: pathlib.Path) -> str:
  """Returns a digest of a file, in hexadecimals."""
  with path.open('rb') as file:
    return hashlib.file_digest(file, 'sha256').hexdigest()[:16]
