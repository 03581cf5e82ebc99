"""Repeated calls of a binary in one process, which starts TensorFlow once.

Each input line is a list of arguments as JSON. Each output line is `[code,
output, errors]`. The code of an exception is its text.
"""

import contextlib
import importlib
import io
import json
import sys

from absl.testing import flagsaver


def main(module: str) -> None:
  """Calls the binary once per line."""
  binary = importlib.import_module(module)
  answers = sys.stdout
  for line in sys.stdin:
    answer = _called(binary, json.loads(line))
    print(json.dumps(answer), file=answers, flush=True)


def _called(binary, arguments):
  # A late import, because the binary defines flags first.
  from experiments import command_line

  sys.argv = ['binary', *arguments]
  streams, code = (io.StringIO(), io.StringIO()), 0
  with flagsaver.flagsaver(), contextlib.ExitStack() as stack:
    stack.enter_context(contextlib.redirect_stdout(streams[0]))
    stack.enter_context(contextlib.redirect_stderr(streams[1]))
    try:
      command_line.main(binary.main)
    except SystemExit as stop:
      code = stop.code or 0
    except BaseException as error:
      code = repr(error)
  return [code, *(stream.getvalue() for stream in streams)]


if __name__ == '__main__':
  main(sys.argv[1])
