"""Hands a run to a SuperLink, shows its progress, and says how it ended.

Flower's own `flwr run` ends with code 0 also where the run failed; what counts
is the status that the SuperLink keeps.
"""

from collections.abc import Callable, Mapping
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types
from typing import Any

from bfl_tf.config import config as config_lib
from bfl_tf.federation import stopping
from bfl_tf.runs import flags_file as recorded

APP = pathlib.Path(__file__).parent / 'app'
# What the server's side puts before the lines that a person is to see, and
# before the reason why it ended.
MARK = 'bfl_tf| '
_POLL_SECONDS = 5.0
_FAILED = re.compile(r'code (\d): (.*)', re.DOTALL)


class FlowerError(stopping.StoppedError):
  """The run ended elsewhere, for the reason given; its state is saved."""


def play(
  config: config_lib.Config,
  output_dir: str | os.PathLike,
  connection: str,
  environment: Mapping[str, str] | None = None,
  federation_config: str = '',
  reason_file: str = '',
  **settings: Any,
) -> None:
  """Plays a run on a SuperLink and prints its lines.

  Args:
    config: what to run.
    output_dir: on the server's machine.
    connection: that Flower's config.toml names.
    environment: of Flower's commands; this process's own if None.
    federation_config: of `flwr run`, for a simulation.
    reason_file: of a simulation, as of `submit`.
    **settings: further run config of `servers`.

  Raises:
    ValueError: the config or a file was wrong; nothing has been written.
    FlowerError: it stopped; the same call goes on.
  """
  flags = '\n'.join(recorded.flag_lines(config))
  settings |= {'flags': flags, 'output-dir': str(output_dir)}
  submit(
    APP, connection, _show, environment, federation_config, settings,
    reason_file,
  )  # fmt: skip


def ask_sites(
  run_dir: str | os.PathLike,
  connection: str,
  timeout: float = 0.0,
  environment: Mapping[str, str] | None = None,
  **settings: Any,
) -> None:
  """Has nodes with files of their own score a finished run's model.

  What `python -m experiments.sites` writes and prints of one process's
  examples: sums are all that leaves a node.

  Args:
    run_dir: on the server's machine.
    connection: that Flower's config.toml names.
    timeout: seconds for an answer; the run's `--client_timeout` if 0.
    environment: of Flower's commands; this process's own if None.
    **settings: further run config of `servers`.

  Raises:
    ValueError: it is no finished run, or its nodes cannot be asked.
    FlowerError: too few answered.
  """
  settings |= {'ask': True, 'answer-timeout': timeout}
  settings['output-dir'] = str(run_dir)
  submit(APP, connection, _show, environment, settings=settings)


def _show(line):
  """Prints what is ours of the lines that are streamed."""
  _, mark, ours = line.partition(MARK)
  if mark:
    print(ours, end='', flush=True)


def submit(
  app: str | os.PathLike,
  connection: str,
  show: Callable[[str], None],
  environment: Mapping[str, str] | None = None,
  federation_config: str = '',
  settings: Mapping[str, Any] = types.MappingProxyType({}),
  reason_file: str = '',
) -> None:
  """Has a SuperLink run a Flower App and waits for its end.

  Args:
    app: its folder.
    connection: that Flower's config.toml names.
    show: is given the lines that the app prints, and Flower's.
    environment: of Flower's commands.
    federation_config: of `flwr run`.
    settings: the run config.
    reason_file: of this machine, where `servers` is to say why it failed; none
      where its machine is another.

  Raises:
    ValueError: nothing listens, or the app refused what it was asked.
    FlowerError: it failed.
  """
  # A narrow terminal's lines would be broken.
  environment = with_commands({**(environment or os.environ), 'COLUMNS': '500'})
  command = ['flwr', 'run', str(app), connection, '--stream']
  if federation_config:
    command += ['--federation-config', federation_config]
  if reason_file:
    settings = {**settings, 'reason-file': reason_file}
  with tempfile.TemporaryDirectory(prefix='bfl_tf_flower_') as scratch:
    if settings:
      path = pathlib.Path(scratch) / 'run.toml'
      path.write_text(_toml(settings))
      command += ['--run-config', str(path)]
    run_id, said = _streamed(command, show, environment)
  if run_id is None:
    raise ValueError(f'--superlink={connection}: {_last(said)}')
  _check(connection, run_id, environment, reason_file)


def with_commands(environment: Mapping[str, str]) -> dict[str, str]:
  """Returns an environment in which Flower's commands are found.

  They are beside this interpreter, also where no virtual one is active.
  """
  beside = os.path.dirname(sys.executable)
  path = os.pathsep.join([beside, environment.get('PATH', '')])
  return {**environment, 'PATH': path}


def _streamed(command, show, environment) -> tuple[str | None, list[str]]:
  """Shows the lines that are meant for it; returns the run's id."""
  run_id: str | None = None
  said: list[str] = []
  with subprocess.Popen(
    command,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  ) as process:
    try:
      for line in process.stdout or ():
        started = re.search(r'started run (\d+)', line)
        run_id = started[1] if started else run_id
        show(line)
        said = [*said[-20:], line.strip('│╭╮╰╯─ \n')]
    finally:
      # Whoever stops watching is not made to wait for the run.
      process.terminate()
  return run_id, said


def _check(connection, run_id, environment, reason_file):
  """Waits for a run's end; raises what it ended with if not completed.

  Where a simulation's server fails, Flower may report only that the simulation
  did, and its log may end before the server's error reaches it: so the server
  leaves its reason in a file too.
  """
  while True:
    status, details = _status(connection, run_id, environment)
    if status.startswith('finished'):
      break
    # The stream of its lines broke off.
    time.sleep(_POLL_SECONDS)
  if status == 'finished:completed':
    return
  path = pathlib.Path(reason_file)
  left = path.read_text() if path.is_file() else ''
  failed = _FAILED.search(left) or _FAILED.search(details)
  if failed is None:
    raise FlowerError(f'run {run_id} is {status}: {details}')
  raise (ValueError if failed[1] == '2' else FlowerError)(failed[2])


def _status(connection, run_id, environment) -> tuple[str, str]:
  command = ['flwr', 'list', connection, '--run-id', run_id, '--format', 'json']
  found = subprocess.run(
    command, env=environment, capture_output=True, text=True, check=False
  )
  try:
    (run,) = json.loads(found.stdout)['runs']
    return run['status'], run['status-details']
  except (ValueError, KeyError) as error:
    raise FlowerError(
      f'--superlink={connection} says nothing of run {run_id} any more: '
      f'{_last(found.stdout.splitlines() + found.stderr.splitlines())}'
    ) from error


def _last(lines) -> str:
  """The text of Flower's last box of an error, or the last line."""
  text = '\n'.join(line.strip() for line in lines if line.strip())
  _, boxed, error = text.rpartition('Error')
  said = error.split('\n', 1)[-1] if boxed else text.rpartition('\n')[2]
  return ' '.join(said.split()) or 'it said nothing'


def _toml(settings) -> str:
  """Strings as TOML's basic ones, which JSON's are but for escapes of pairs."""
  return ''.join(
    f'{name.replace("_", "-")} = {json.dumps(value, ensure_ascii=False)}\n'
    for name, value in settings.items()
  )
