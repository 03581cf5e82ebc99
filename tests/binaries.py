"""Helpers that run a binary, once or with many command lines in a process."""

import json
import os
import pathlib
import subprocess
import sys
import time

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
  # A single process starts TensorFlow only once.
  process = subprocess.run(
    [sys.executable, str(ROOT / 'tests' / 'driven.py'), module],
    input=''.join(f'{json.dumps(line)}\n' for line in lines),
    cwd=ROOT,
    env={**os.environ, 'PYTHONPATH': f'{ROOT}{os.pathsep}{folder}'},
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert process.returncode == 0, process.stderr
  return [json.loads(line) for line in process.stdout.splitlines()]
