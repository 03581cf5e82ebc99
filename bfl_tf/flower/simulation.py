"""A run on Flower's simulation: a SuperLink on this machine, for this run.

As `flwr run` does where nothing listens, but with a port, a home and an end of
its own.
"""

from collections.abc import Iterator
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any
import urllib.request

import psutil

from bfl_tf import config as config_lib
from bfl_tf import datasets
from bfl_tf.flower import runs, sites
from bfl_tf.runs import directory as records

_START_SECONDS = 60.0
# Of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
# Orders that the server can hold at once, however many clients there are.
_NUM_NODES = 16


def simulate(
  config: config_lib.Config, output_dir: str | os.PathLike
) -> dict[str, Any]:
  """As `bfl_tf.run`, each client an app of Flower: the same bits.

  Args:
    config: what to run; `num_workers` processes train, 0 for one a core.
    output_dir: a new directory, or that of the same run.

  Returns:
    The summary.

  Raises:
    ValueError: as `bfl_tf.run`.
    FlowerError: the run stopped; the same call goes on.
  """
  config = config.replace(engine='flower')
  path = pathlib.Path(output_dir).absolute()
  # The server reads the data, in a process that takes a minute to be there; of
  # a finished run it reads none.
  if records.RunDirectory(path).summary() is None:
    datasets.check_there(config.dataset, config.train_split, config.test_split)
  processes = config.num_workers or len(os.sched_getaffinity(0))
  nodes = num_nodes(config, processes)
  federation_config = (
    f'num-supernodes={nodes} client-resources-num-cpus=1 '
    f'init-args-num-cpus={processes} init-args-log-to-driver=false'
  )
  with superlink('--simulation') as environment:
    runs.play(
      config, path, 'here', environment, federation_config,
      simulation=True, window=nodes,
      reason_file=str(pathlib.Path(environment['FLWR_HOME'], 'reason.txt')),
    )  # fmt: skip
  summary = records.RunDirectory(path).summary()
  if summary is None:
    raise runs.FlowerError(f'{path} has no summary.')
  return summary


def num_nodes(config: config_lib.Config, processes: int) -> int:
  """Returns how many nodes play the clients, and orders are out at a time.

  Any node may play any client here. Flower looks ten times a second what there
  is for a node, and hands it one order: a few nodes would leave processes idle
  whose trainings are short.

  Args:
    config: of the run.
    processes: that train.
  """
  # Twice as many as can be played, so that nobody waits for the next. Where a
  # client has a deadline there are no more: it begins when its order goes out.
  nodes = 2 * processes
  if not config.client_timeout:
    nodes = max(nodes, _NUM_NODES)
  return min(config.num_clients, nodes)


@contextlib.contextmanager
def superlink(*flags: str) -> Iterator[dict[str, str]]:
  """Starts a SuperLink; yields the environment in which it is `here`.

  All that it started ends with it.

  Raises:
    FlowerError: it does not come up.
  """
  home = pathlib.Path(tempfile.mkdtemp(prefix='bfl_tf_flower_'))
  port = free_port()
  (home / 'config.toml').write_text(
    f'[superlink]\ndefault = "here"\n[superlink.here]\n'
    f'address = "127.0.0.1:{port}"\ninsecure = true\n'
  )
  environment = runs.with_commands(os.environ) | {
    'FLWR_HOME': str(home),
    'FLWR_TELEMETRY_ENABLED': '0',
    'FLWR_DISABLE_UPDATE_CHECK': '1',
    'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
    'RAY_DEDUP_LOGS': '0',
    'TF_CPP_MIN_LOG_LEVEL': '3',
    # Who names code of their own here runs it on their own machine.
    sites.OWN_CODE: '1',
  }
  command = [
    'flower-superlink', '--insecure', '--isolation', 'subprocess', '--port',
    str(port), '--disable-runtime-dependency-installation', *flags,
  ]  # fmt: skip
  log = home / 'superlink.txt'
  with log.open('w') as file:
    process = subprocess.Popen(
      command,
      env=environment,
      stdout=file,
      stderr=file,
      start_new_session=True,
      preexec_fn=_ends_with_its_parent,
    )
  try:
    _wait_for(process, port, log)
    yield environment
  finally:
    _end(process, home)
    shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
  """Returns a port of this machine that nobody listens at."""
  with socket.socket() as found:
    found.bind(('127.0.0.1', 0))
    return found.getsockname()[1]


def _ends_with_its_parent():
  """Also where that is killed and can end nothing any more; on Linux alone."""
  if sys.platform == 'linux':
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_for(process, port, log):
  deadline = time.monotonic() + _START_SECONDS
  while time.monotonic() < deadline and process.poll() is None:
    with contextlib.suppress(OSError):
      urllib.request.urlopen(f'http://127.0.0.1:{port}/health', timeout=1)
      return
    time.sleep(0.1)
  lines = log.read_text().splitlines() or ['it said nothing']
  raise runs.FlowerError(f'flower-superlink does not start: {lines[-1]}')


def _end(process, home):
  """Ends a process and all that it started.

  They are known by their home: when a run is over, Ray's own processes may
  have lost their parent and still be there.
  """
  for stop in (psutil.Process.terminate, psutil.Process.kill):
    started = list(_at_home(home))
    for one in started:
      with contextlib.suppress(psutil.NoSuchProcess):
        stop(one)
    psutil.wait_procs(started, timeout=5)
  process.wait()


def _at_home(home):
  for process in psutil.process_iter():
    # Other people's processes show nothing.
    with contextlib.suppress(psutil.Error):
      if process.environ().get('FLWR_HOME') == str(home):
        yield process
