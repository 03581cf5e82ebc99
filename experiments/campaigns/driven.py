"""A binary called over and over in one process.

TensorFlow starts once. A line of JSON goes in, a list of arguments; one comes
out, `[code, output, errors]`. A code that is text is an exception.
"""

from collections.abc import Sequence
import contextlib
import importlib
import io
import json
import os
import pathlib
import selectors
import subprocess
import sys
from typing import Any

_ROOT = str(pathlib.Path(__file__).parents[2])


class Driven:
  """A process that calls one binary."""

  def __init__(
    self, module: str, check_only: bool = False, folder: str | None = None
  ):
    """Starts it; with `check_only` a run that could be played is not.

    Relative paths begin at the folder.
    """
    words = [sys.executable, '-m', __name__, module]
    self._process = subprocess.Popen(
      [*words, 'check' if check_only else 'play'],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      cwd=folder,
      env={**os.environ, 'PYTHONPATH': _ROOT},
    )
    self._waiting = selectors.DefaultSelector()
    self._waiting.register(self._process.stdout, selectors.EVENT_READ)

  def call(self, arguments: Sequence[str], timeout: float) -> list[Any] | None:
    """Returns code, output and errors; None if it hung, and was ended.

    Raises:
      BrokenPipeError: it is no more.
    """
    self._process.stdin.write(f'{json.dumps(list(arguments))}\n'.encode())
    self._process.stdin.flush()
    if not self._waiting.select(timeout):
      self._process.kill()
      self._process.wait()
      return None
    line = self._process.stdout.readline()
    if not line:
      return [f'died with code {self._process.wait()}', '', '']
    return json.loads(line)

  @property
  def over(self) -> bool:
    """Whether it has ended."""
    return self._process.poll() is not None

  def close(self) -> None:
    """Ends it."""
    if not self.over:
      self._process.communicate()


def _serve(module: str, how: str) -> None:
  from bfl_tf import runs as runs_lib

  binary = importlib.import_module(module)
  if how == 'check':
    runs_lib.Run.play = lambda self: sys.exit(0)
  answers = sys.stdout
  for line in sys.stdin:
    answer = _called(binary, json.loads(line))
    print(json.dumps(answer), file=answers, flush=True)


def _called(binary, arguments):
  # Here: a binary defines the flags that others have too.
  from absl.testing import flagsaver

  from experiments import flags

  sys.argv = ['binary', *arguments]
  said, code = (io.StringIO(), io.StringIO()), 0
  with flagsaver.flagsaver(), contextlib.ExitStack() as stack:
    stack.enter_context(contextlib.redirect_stdout(said[0]))
    stack.enter_context(contextlib.redirect_stderr(said[1]))
    try:
      flags.main(binary.main)
    except SystemExit as stop:
      code = stop.code or 0
    except BaseException as error:
      code = repr(error)
  return [code, *(stream.getvalue() for stream in said)]


if __name__ == '__main__':
  _serve(*sys.argv[1:])
