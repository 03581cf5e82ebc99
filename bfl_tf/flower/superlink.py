"""Submission of runs to a SuperLink, with progress and final status.

`flwr run` exits with code 0 even if the run fails, so the status comes from the
SuperLink.
"""

from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from bfl_tf.analysis import risk
from bfl_tf.config.config import Config
from bfl_tf.federation import stopping
from bfl_tf.runs import directory, run_config

_APP = pathlib.Path(__file__).parent / 'app'
# The ServerApp prefixes the lines for the user with this mark.
MARK = 'bfl_tf| '
_POLL_SECONDS = 5.0
# Interval at which the status is read while the log is open.
_CHECK_SECONDS = 60.0
_REPLY_SECONDS = 300.0
# Next to this interpreter, so that no virtual environment must be active.
_FLWR = os.path.join(os.path.dirname(sys.executable), 'flwr')
_FAILED = re.compile(r'code (\d): (.*)', re.DOTALL)


class FlowerError(stopping.StoppedError):
  """Failure of a run in another process; its state is saved."""


def execute(
  config: Config,
  output_dir: str | os.PathLike,
  connection: str,
  overwrite: bool = False,
) -> None:
  """Runs a config on a SuperLink and prints its progress.

  Raises:
    ValueError: The config or a file is invalid; nothing was written.
    FlowerError: The run stopped; the same call continues it.
  """
  flags = '\n'.join(run_config.flag_lines(config))
  path = directory.RunDirectory(output_dir, overwrite).path
  settings = {'flags': flags, 'output-dir': str(path)}
  _submit(connection, {**settings, 'overwrite': overwrite})


def evaluate_on_sites(
  run_dir: str | os.PathLike,
  connection: str,
  timeout: float = 0.0,
  score: str = 'lac',
  sets_by: str = '',
  choice: risk.Risk = risk.DEFAULT,
) -> None:
  """Evaluates a finished run's model on nodes with their own files.

  Writes and prints the same as `bfl-tf report`; only sums leave a node.

  Raises:
    ValueError: The directory holds no finished run, or its nodes have no own
      files or changed ones.
    FlowerError: Too few nodes replied.
  """
  settings = {
    'ask': True, 'answer-timeout': timeout, 'sets': score, 'sets-by': sets_by,
    'output-dir': str(run_dir), 'event': choice.event,
    'threshold': choice.threshold, 'recalibrate': choice.recalibrate,
  }  # fmt: skip
  _submit(connection, settings)


def reason(error: Exception) -> str:
  """Returns an error as one line that `failure` can parse."""
  code = 2 if isinstance(error, ValueError) else 1
  known = isinstance(error, ValueError | stopping.StoppedError)
  kind = '' if known else f'{type(error).__name__}: '
  return f'code {code}: {kind}{" ".join(str(error).splitlines())}'


def failure(text: str) -> Exception:
  """Returns the server's error from its final status text."""
  failed = _FAILED.search(text)
  if failed is None:
    return FlowerError(text)
  return (ValueError if failed[1] == '2' else FlowerError)(failed[2])


def _submit(connection, settings):
  """Submits the app to a SuperLink and waits for its end."""
  with tempfile.TemporaryDirectory(prefix='bfl_tf_flower_') as scratch:
    path = pathlib.Path(scratch) / 'run.toml'
    # JSON quotes strings almost like TOML.
    lines = [
      f'{name} = {json.dumps(value, ensure_ascii=False)}\n'
      for name, value in settings.items()
    ]
    path.write_text(''.join(lines), 'utf-8')
    run = ['run', str(_APP), connection, '--run-config', str(path)]
    run_id = _flwr(connection, ValueError, *run)['run-id']
  with _streaming(connection, run_id) as reader:
    while True:
      # The log usually ends with the run, but its server may have vanished.
      reader.join(_CHECK_SECONDS)
      (run,) = _flwr(
        connection, FlowerError, 'list', connection, '--run-id', run_id
      )['runs']
      if run['status'].startswith('finished'):
        reader.join(_POLL_SECONDS)
        break
      if not reader.is_alive():
        time.sleep(_POLL_SECONDS)
  if run['status'] != 'finished:completed':
    raise failure(f'{run["status"]}: {run["status-details"]}')


def _flwr(connection, error, *arguments) -> dict[str, Any]:
  """Returns the JSON output of a Flower command."""
  process = subprocess.run(
    [_FLWR, *arguments, '--format', 'json'],
    stdout=subprocess.PIPE, text=True, check=False, timeout=_REPLY_SECONDS,
  )  # fmt: skip
  answer = json.loads(process.stdout or '{}')
  if not answer.get('success'):
    why = answer.get('error-message', f'flwr ended with {process.returncode}')
    raise error(f'--superlink={connection}: {" ".join(why.split())}')
  return answer


@contextlib.contextmanager
def _streaming(connection, run_id) -> Iterator[threading.Thread]:
  """Yields a thread that prints the marked lines of a run's log."""

  def show(lines):
    for line in lines:
      _, mark, ours = line.partition(MARK)
      if mark:
        print(ours, end='', flush=True)

  with subprocess.Popen(
    [_FLWR, 'log', run_id, connection],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  ) as process:
    reader = threading.Thread(target=show, args=(process.stdout,), daemon=True)
    reader.start()
    try:
      yield reader
    finally:
      # An interrupt must not wait for the end of the run.
      process.terminate()
