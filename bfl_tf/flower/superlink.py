"""Hands a run to a SuperLink, shows its progress, and says how it ended.

Flower's own `flwr run` ends with code 0 also where the run failed; what counts
is the status that the SuperLink keeps.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from bfl_tf.config.config import Config
from bfl_tf.federation import stopping
from bfl_tf.runs import flags_file

_APP = pathlib.Path(__file__).parent / 'app'
# What the server's side puts before the lines that a person is to see, and
# before the reason why it ended.
MARK = 'bfl_tf| '
_POLL_SECONDS = 5.0
# Beside this interpreter, also where no virtual environment is active.
_FLWR = os.path.join(os.path.dirname(sys.executable), 'flwr')
_FAILED = re.compile(r'code (\d): (.*)', re.DOTALL)


class FlowerError(stopping.StoppedError):
  """The run ended elsewhere, for the reason given; its state is saved."""


def play(
  config: Config,
  output_dir: str | os.PathLike,
  connection: str,
) -> None:
  """Plays a run on a SuperLink and prints its lines.

  Args:
    config: Config of the run.
    output_dir: Directory on the server's machine.
    connection: Name of a connection in Flower's config.toml.

  Raises:
    ValueError: the config or a file was wrong; nothing has been written.
    FlowerError: The run stopped; the same call continues it.
  """
  flags = '\n'.join(flags_file.flag_lines(config))
  _submit(connection, {'flags': flags, 'output-dir': str(output_dir)})


def ask_sites(
  run_dir: str | os.PathLike,
  connection: str,
  timeout: float = 0.0,
  score: str = 'lac',
) -> None:
  """Has nodes with files of their own score a finished run's model.

  What `bfl-tf report` writes and prints of one process's
  examples: sums are all that leaves a node.

  Args:
    run_dir: Directory on the server's machine.
    connection: Name of a connection in Flower's config.toml.
    timeout: seconds for an answer; the run's `--client_timeout` if 0.
    score: Score of the prediction sets, one of `metrics.SET_SCORES`.

  Raises:
    ValueError: The directory holds no finished run, or its nodes cannot be
      asked.
    FlowerError: too few answered.
  """
  asked = {'ask': True, 'answer-timeout': timeout, 'sets': score}
  asked['output-dir'] = str(run_dir)
  _submit(connection, asked)


def reason(error: Exception) -> str:
  """Returns an error as one line from which `failure` makes it again."""
  code = 2 if isinstance(error, ValueError) else 1
  known = isinstance(error, ValueError | stopping.StoppedError)
  kind = '' if known else f'{type(error).__name__}: '
  return f'code {code}: {kind}{" ".join(str(error).splitlines())}'


def failure(said: str) -> Exception:
  """Returns what the server's side raised, from what is known of its end."""
  failed = _FAILED.search(said)
  if failed is None:
    return FlowerError(said)
  return (ValueError if failed[1] == '2' else FlowerError)(failed[2])


def _submit(connection, settings):
  """Submits the app to a SuperLink and waits for its end."""
  with tempfile.TemporaryDirectory(prefix='bfl_tf_flower_') as scratch:
    path = pathlib.Path(scratch) / 'run.toml'
    path.write_text(_toml(settings))
    run = ['run', str(_APP), connection, '--run-config', str(path)]
    run_id = _said(connection, ValueError, *run)['run-id']
  _stream(connection, run_id)
  while True:
    (run,) = _said(
      connection, FlowerError, 'list', connection, '--run-id', run_id
    )['runs']
    if run['status'].startswith('finished'):
      break
    # The stream of its lines broke off.
    time.sleep(_POLL_SECONDS)
  if run['status'] != 'finished:completed':
    raise failure(run['status-details'] or f'run {run_id} is {run["status"]}')


def _said(connection, error, *arguments) -> dict[str, Any]:
  """Returns the JSON output of a Flower command."""
  found = subprocess.run(
    [_FLWR, *arguments, '--format', 'json'],
    stdout=subprocess.PIPE, text=True, check=False,
  )  # fmt: skip
  said = json.loads(found.stdout or '{}')
  if not said.get('success'):
    why = said.get('error-message', f'flwr ended with {found.returncode}')
    raise error(f'--superlink={connection}: {" ".join(why.split())}')
  return said


def _stream(connection, run_id):
  """Prints those lines of a run's log that are ours."""
  with subprocess.Popen(
    [_FLWR, 'log', run_id, connection],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  ) as process:
    try:
      for line in process.stdout or ():
        _, mark, ours = line.partition(MARK)
        if mark:
          print(ours, end='', flush=True)
    finally:
      # Whoever stops watching is not made to wait for the run.
      process.terminate()


def _toml(settings) -> str:
  """Quotes strings for TOML; JSON differs only in escapes of surrogate
  pairs."""
  return ''.join(
    f'{name} = {json.dumps(value, ensure_ascii=False)}\n'
    for name, value in settings.items()
  )
