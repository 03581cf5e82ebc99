"""A binary called over and over in one process: TensorFlow starts once.

A line of JSON goes in, a list of arguments; one comes out, `[code, output,
errors]`. A code that is text is an exception.
"""

import contextlib
import importlib
import io
import json
import sys

from absl.testing import flagsaver


def main(module: str) -> None:
  """Calls the binary once for every line."""
  binary = importlib.import_module(module)
  answers = sys.stdout
  for line in sys.stdin:
    answer = _called(binary, json.loads(line))
    print(json.dumps(answer), file=answers, flush=True)


def _called(binary, arguments):
  # Here: a binary defines the flags that others have too.
  from experiments import command_line

  sys.argv = ['binary', *arguments]
  said, code = (io.StringIO(), io.StringIO()), 0
  with flagsaver.flagsaver(), contextlib.ExitStack() as stack:
    stack.enter_context(contextlib.redirect_stdout(said[0]))
    stack.enter_context(contextlib.redirect_stderr(said[1]))
    try:
      command_line.main(binary.main)
    except SystemExit as stop:
      code = stop.code or 0
    except BaseException as error:
      code = repr(error)
  return [code, *(stream.getvalue() for stream in said)]


if __name__ == '__main__':
  main(sys.argv[1])
