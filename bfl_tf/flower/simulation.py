"""Runs in Flower's simulation, with server, grid and Ray in one child process.

`flwr run` would need a SuperLink to start, poll and stop. A child process
reports its end by an exit code, and it ends with its parent. Flower deprecates
`run_simulation`, but version 1.41 of the extra `flower` still has it.
"""

from collections.abc import Callable, Sequence
import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from typing import Any

from absl import logging
from flwr import clientapp, serverapp

from bfl_tf import runs, startup, training
from bfl_tf.config.config import Config
from bfl_tf.flower import client_side, engine, messages, nodes, superlink
from bfl_tf.runs import directory, run_config

# Bounds the orders in the server's memory for any number of clients.
_NUM_NODES = 16
_CHILD = 'from bfl_tf.flower import simulation; simulation.main()'


def simulate(
  config: Config, output_dir: str | os.PathLike, overwrite: bool = False
) -> dict[str, Any]:
  """Runs like `bfl_tf.run`, with clients as Flower apps; same results.

  Args:
    config: Config of the run; `num_workers` processes train, 0 for one per
      core.

  Raises:
    FlowerError: The run stopped; the same call continues it.
  """
  config = config.replace(engine='flower')
  path = pathlib.Path(output_dir).absolute()
  results: Any = directory.RunDirectory(path, overwrite)
  replace = 'replace' if overwrite else ''
  execute(_CHILD, [str(path), replace, *run_config.text(config).splitlines()])
  return results.summary(config.final_round)


def num_nodes(config: Config) -> int:
  """Returns the number of nodes, which is also the limit of pending orders.

  Flower sends each node at most ten orders per second. With few nodes,
  processes would be idle between short trainings.
  """
  # Two orders per process keep it busy. With a deadline there are no more,
  # because it starts when the order is sent.
  number = 2 * training.bounded(config.num_workers)
  if not config.client_timeout:
    number = max(number, _NUM_NODES)
  return min(config.num_clients, number)


_print = functools.partial(print, end='', flush=True)


def execute(
  code: str, given: Sequence[str] = (), show: Callable[[str], object] = _print
) -> None:
  """Runs a child process that calls `run_apps`, and waits for its end."""
  environment = {
    **os.environ,
    'FLWR_TELEMETRY_ENABLED': '0',
    'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
    'TF_CPP_MIN_LOG_LEVEL': '3',
    'PYTHONUTF8': '1',
    # A simulation runs user code on the user's own machine.
    messages.OWN_CODE: '1',
  }
  with tempfile.TemporaryFile('w+', encoding='utf-8') as errors:
    # The child ends when its standard input closes, so it ends with us.
    process = subprocess.Popen(
      [sys.executable, '-c', code, *given], env=environment,
      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
      encoding='utf-8', start_new_session=True,
    )  # fmt: skip
    try:
      for line in process.stdout or ():
        show(line)
      failed = process.wait()
    finally:
      # Ray's processes may outlive the child.
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
      process.communicate()
    if failed < 0:
      raise superlink.FlowerError(
        f"the process of Flower's simulation was ended by signal {-failed}; "
        'signal 9 often means too little memory.'
      )
    if failed:
      errors.seek(0)
      last = errors.read().splitlines()[-1:] or [f'it ended with code {failed}']
      raise superlink.failure(last[0])


def given() -> list[str]:
  """Returns the arguments of the parent, with which this process ends."""

  def wait():
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)

  threading.Thread(target=wait, daemon=True).start()
  return sys.argv[1:]


def run_apps(
  server: serverapp.ServerApp,
  client: clientapp.ClientApp,
  num_nodes: int,
  num_processes: int,
  cpus: int = 1,
) -> None:
  """Simulates apps with Flower and a Ray instance local to this process."""
  # Ray forks in this thread while the server runs in another.
  startup.import_all()
  # It imports TensorFlow, whose log `startup` discards.
  from flwr import simulation as flwr_simulation

  settings: dict[str, Any] = {
    'client_resources': {'num_cpus': cpus, 'num_gpus': 0.0},
    'init_args': {
      'address': 'local',
      'num_cpus': max(num_processes, cpus),
      'log_to_driver': False,
    },
  }
  try:
    flwr_simulation.run_simulation(
      server, client, num_nodes, backend_config=settings
    )
  except Exception as error:
    traceback.print_exc()
    print(superlink.reason(error), file=sys.stderr, flush=True)
    # The server's thread may wait forever for Ray, so it is not joined.
    os._exit(1)


def main() -> None:
  """Runs the config from `simulate` in its child process."""
  logging.set_verbosity(logging.WARNING)
  path, replace, *flags = given()
  config = run_config.parse(flags)
  window, server = num_nodes(config), serverapp.ServerApp()

  @server.main()
  def execute_run(grid, unused_context):
    flower = engine.Engine(nodes.SimulatedNodes(grid, window), window)
    runs.Run(config, path, engine=flower, overwrite=bool(replace)).execute()

  processes = training.bounded(config.num_workers)
  run_apps(server, client_side.app, window, processes)
