"""User-supplied code: calls, error messages and digests of its files.

An error in user code becomes one line that names the flag. The original
traceback is chained to it.
"""

from collections.abc import Callable
import functools
import hashlib
import importlib
import importlib.util
import os
import pathlib
import re
import sys
import sysconfig
import traceback
import types
from typing import Any

from bfl_tf import startup

# Errors that user code may raise; its sys.exit must not end a run silently.
ERRORS = (Exception, SystemExit)


_MOST_LINES = 40
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
# Folders of this package and of installed packages.
_PACKAGE = os.path.join(os.path.dirname(__file__), '..')
_LIBRARIES = tuple(
  os.path.realpath(place)
  for place in (
    _PACKAGE,
    os.path.join(_PACKAGE, '..', 'experiments'),
    *map(str, sysconfig.get_paths().values()),
  )
)


def import_module(name: str) -> types.ModuleType:
  """Imports a user's module, without the log lines of TensorFlow's import."""
  if name not in sys.modules:
    spec = importlib.util.find_spec(name)
    path = pathlib.Path(spec.origin or '' if spec else '')
    if path.is_file() and b'import tensorflow' in path.read_bytes():
      startup.start_tensorflow()
  return importlib.import_module(name)


class RaisedError(ValueError):
  """An error in user code; the original exception is its cause."""


def call(what: str, function: Callable, *arguments: Any) -> Any:
  """Calls a function; if `what` names user code, errors become RaisedErrors."""
  if ':' not in what:
    return function(*arguments)
  try:
    return function(*arguments)
  except RaisedError:
    raise
  except ERRORS as error:
    text = describe(error).rstrip('.')
    raise RaisedError(f'{what} raised {text}.') from error


def attempt(function: Callable, *arguments: Any) -> Any:
  """Returns the result of a call, or the error that it raised.

  For calls whose failure affects one client or one reply only. An interrupt is
  raised.
  """
  try:
    return function(*arguments)
  except ERRORS as error:
    return error


def describe(error: BaseException) -> str:
  """Returns the type and the message of an exception, in one line."""
  first, *others = str(error).strip().splitlines() or ['']
  # An error in a traced function has its message in the last line.
  text = others[-1] if others and first.startswith('in user code') else first
  kind = f'{type(error).__name__}: '
  return kind + text.strip().removeprefix(kind) + _place(error)


def _place(error) -> str:
  """Returns the last line of user code that an error passed, if any."""
  text = ''.join(traceback.format_exception(error))
  frames = [
    (pathlib.Path(path), line, function)
    for path, line, function in _FRAME.findall(text)
    if _is_users(path)
  ]
  if not frames:
    return ''
  path, line, function = frames[-1]
  return f' ({path.name}, line {line}, in {function})'


def _is_users(path):
  return not path.startswith((*_LIBRARIES, '<')) and '__autograph' not in path


def traceback_of(error: BaseException) -> str:
  """Returns a traceback with the frames of user code, or its last lines."""
  shown = traceback.TracebackException.from_exception(error)
  part: traceback.TracebackException | None = shown
  while part:
    own = [frame for frame in part.stack if _is_users(frame.filename)]
    # TensorFlow puts the frames of traced user code into the message.
    is_traced = str(part).startswith('in user code')
    part.stack[:] = own if own or is_traced else part.stack
    part = part.__cause__ or part.__context__
  lines = ''.join(shown.format()).splitlines()
  return '\n'.join(lines[-_MOST_LINES:])


def digest(name: str) -> str | None:
  """Returns a digest of the file of a `package.module:name`."""
  try:
    module = importlib.import_module(name.partition(':')[0])
    digest = digest_of(pathlib.Path(str(module.__file__)))
    # A module that is loaded again has a new spec; a script has none.
    return vars(module.__spec__ or module).setdefault('bfl_tf_digest', digest)
  except (ImportError, OSError, AttributeError):
    return None


def digest_of(path: pathlib.Path) -> str:
  """Returns the hexadecimal digest of a file.

  It is cached until the size or the time of modification changes: a large data
  file is read once for all runs of a study.
  """
  status = path.stat()
  return _digest_of(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(32)
def _digest_of(path, size, modified):
  del size, modified  # They are part of the key.
  digest = hashlib.sha256()
  with path.open('rb') as file:
    while block := file.read(2**20):
      digest.update(block)
  return digest.hexdigest()[:16]
