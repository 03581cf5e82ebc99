"""Helpers that run a binary, once or with many command lines in a process.

`python tests/binaries.py MODULE` calls a binary repeatedly, so that TensorFlow
starts only once. Each input line is a list of arguments as JSON, and each
output line is `[code, output, errors]`. The code of an exception is its text.
"""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import time

from absl.testing import flagsaver

ROOT = pathlib.Path(__file__).parents[1]


def start(module, *arguments) -> subprocess.Popen:
  """Starts `python -m module` from the root of the repository."""
  return subprocess.Popen(
    [sys.executable, '-m', module, *arguments],
    cwd=ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def playing(path, *flags) -> subprocess.Popen:
  """Starts a run and waits for a few rounds."""
  process = start('experiments.run', f'--output_dir={path}', *flags)
  metrics, deadline = path / 'metrics.csv', time.monotonic() + 200
  while not (
    metrics.exists() and len(metrics.read_text('utf-8').split('\n')) > 5
  ):
    assert process.poll() is None, process.communicate()[1]
    assert time.monotonic() < deadline
    time.sleep(0.01)
  return process


def run(module, *arguments, timeout=300):
  """Returns exit code, output and errors of a process."""
  process = start(module, *arguments)
  out, error = process.communicate(timeout=timeout)
  return process.returncode, out, error


def drive(module, lines, folder=ROOT):
  """Returns `[code, output, errors]` for each list of arguments.

  User modules are imported from `folder`.
  """
  process = subprocess.run(
    [sys.executable, __file__, module],
    input=''.join(f'{json.dumps(line)}\n' for line in lines),
    cwd=ROOT,
    env={**os.environ, 'PYTHONPATH': f'{ROOT}{os.pathsep}{folder}'},
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert process.returncode == 0, process.stderr
  return [json.loads(line) for line in process.stdout.splitlines()]


def _called(binary, arguments):
  # A late import, because the binary defines flags first.
  from experiments import command_line

  sys.argv = ['binary', *arguments]
  out, errors, code = io.StringIO(), io.StringIO(), 0
  with (
    flagsaver.flagsaver(),
    contextlib.redirect_stdout(out),
    contextlib.redirect_stderr(errors),
  ):
    try:
      command_line.main(binary.main)
    except SystemExit as stop:
      code = stop.code or 0
    except BaseException as error:
      code = repr(error)
  return [code, out.getvalue(), errors.getvalue()]


if __name__ == '__main__':
  _binary = importlib.import_module(sys.argv[1])
  for _line in sys.stdin:
    print(json.dumps(_called(_binary, json.loads(_line))), flush=True)
