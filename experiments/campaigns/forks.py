"""A binary as processes that begin where its imports have ended.

TensorFlow is imported once, by a server that forks for each process: seconds
less for each, and each is the binary itself, to be killed.
"""

from collections.abc import Sequence
import importlib
import json
import os
import pathlib
import subprocess
import sys
import traceback


class Forks:
  """A server of one binary; one process at a time."""

  def __init__(self, module: str):
    """Starts the server of a module that `python -m` would run."""
    self._server = subprocess.Popen(
      [sys.executable, '-m', __name__, module],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )

  def start(self, arguments: Sequence[str], log: pathlib.Path) -> int:
    """Starts a process; what it prints goes to a file. Returns its id."""
    self._server.stdin.write(json.dumps([list(arguments), str(log)]) + '\n')
    self._server.stdin.flush()
    return int(self._server.stdout.readline())

  def wait(self) -> int:
    """Returns the process's exit code, below 0 for a signal."""
    return int(self._server.stdout.readline())

  def close(self) -> None:
    """Ends the server."""
    self._server.communicate()


def alive(pid: int) -> bool:
  """Whether a process of the server still runs."""
  try:
    status = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except OSError:
    return False
  return status.rpartition(')')[2].split()[0] != 'Z'


def _serve(module: str) -> None:
  binary = importlib.import_module(module)
  for line in sys.stdin:
    arguments, log = json.loads(line)
    pid = os.fork()
    if not pid:
      _become(binary, arguments, log)
    print(pid, flush=True)
    status = os.waitpid(pid, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)


def _become(binary, arguments, log):
  """Is the binary, in a process of its own."""
  # Here: a binary defines the flags that others have too.
  from experiments import flags

  file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
  for stream in (1, 2):
    os.dup2(file, stream)
  sys.argv = [binary.__name__, *arguments]
  code = 0
  try:
    flags.main(binary.main)
  except SystemExit as stop:
    code = stop.code or 0
  except BaseException:
    traceback.print_exc()
    code = 1
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


if __name__ == '__main__':
  _serve(sys.argv[1])
