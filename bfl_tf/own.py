"""Anybody's own code: called, blamed by file and line, told apart by digest.

What is named `package.module:name` may be wrong in ways that ours is not. Then
a person needs its place in their file, and none of our frames.
"""

import ast
from collections.abc import Callable, Iterator
import hashlib
import importlib
import inspect
import pathlib
import re
import sysconfig
import traceback
from typing import Any

_ROOT = pathlib.Path(__file__).parents[1]
_OURS = (f'{_ROOT}/bfl_tf/', f'{_ROOT}/experiments/')
_PATHS = sysconfig.get_paths()
_OTHERS = (_PATHS['stdlib'], _PATHS['platstdlib'], '<', 'site-packages')
# AutoGraph writes functions anew, and says in the message what they were.
_GENERATED = '__autograph_generated_file'
_IN_MESSAGE = re.compile(r'File "([^"]+)", line (\d+)')


def call(what: str, function: Callable, *arguments: Any) -> Any:
  """Calls anybody's own function; what goes wrong is one line.

  Args:
    what: the flag that named it, as `--partition=sites:by_hospital`.
    function: with all that it is given by name.
    *arguments: what it is given by position.

  Raises:
    ValueError: it is no function, lacks an argument, or raised: where.
  """
  if not callable(function):
    raise ValueError(f'{what} is no function or class, but {function!r}.')
  try:
    inspect.signature(function).bind(*arguments)
  except TypeError as error:
    raise ValueError(
      f'{what}: {error}; give it a default, or the name of something that the '
      'run has.'
    ) from None
  except ValueError:
    pass  # Without a signature: the call will tell.
  try:
    return function(*arguments)
  except Exception as error:
    if place(error) is None:
      raise
    raise ValueError(f'{what} raised {describe(error)}.') from error


def place(error: BaseException) -> str | None:
  """Returns file and line of the innermost frame that is not ours.

  Only of what we called: a script that calls us is not to blame. None if the
  exception comes from our own code or a library that it called.
  """
  frames = [
    (frame.filename, frame.lineno)
    for frame in traceback.extract_tb(error.__traceback__)
  ]
  ours = [i for i, (file, _) in enumerate(frames) if file.startswith(_OURS)]
  frames = frames[ours[0] :] if ours else []
  frames += _IN_MESSAGE.findall(_message(error))
  for file, line in reversed(frames):
    if _is_theirs(file):
      return f'{file}, line {line}'
  return None


def describe(error: BaseException) -> str:
  """Returns an exception's type and message, and its place if it is theirs."""
  lines = _message(error).strip().splitlines() or ['']
  text = f'{type(error).__name__}: {lines[0]}'
  if lines[0].startswith('in user code'):
    text = lines[-1].strip()
  where = place(error)
  return f'{text} ({where})' if where else text


def _message(error):
  try:
    return str(error)
  # Anybody's exception may fail to print; what failed first is the news.
  except Exception as second:
    return f'its message raised {type(second).__name__}'


def digest(name: str) -> str | None:
  """Returns a digest of a thing's source, and of what it names in its module.

  Args:
    name: `package.module:name`.

  Returns:
    Hexadecimals; None of what has no source.
  """
  module, _, attribute = name.partition(':')
  try:
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
  except (ImportError, OSError, TypeError, SyntaxError):
    return None
  statements: dict[str, list[ast.stmt]] = {}
  for statement in tree.body:
    for bound in _bound(statement):
      statements.setdefault(bound, []).append(statement)
  reached, waiting = [], [attribute.partition('.')[0]]
  while waiting:
    for statement in statements.pop(waiting.pop(), ()):
      reached.append(ast.dump(statement))
      waiting += [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
  text = '\n'.join(sorted(set(reached)))
  return hashlib.sha256(text.encode()).hexdigest()[:16]


def _bound(statement: ast.stmt) -> Iterator[str]:
  """Yields the names that a statement of a module binds."""
  if isinstance(
    statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
  ):
    yield statement.name
    return
  for node in ast.walk(statement):
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
      yield node.id
    elif isinstance(node, ast.alias):
      yield (node.asname or node.name).partition('.')[0]


def _is_theirs(file: str) -> bool:
  others = file.startswith(_OTHERS[:3]) or _OTHERS[3] in file
  return not others and not file.startswith(_OURS) and _GENERATED not in file
