"""Tests of Flower's simulation with its processes."""

import os
import pathlib
import subprocess
import sys
import time

import fake
import grids
import psutil
import pytest

from bfl_tf import runs
from bfl_tf.config.config import Config
from bfl_tf.flower import nodes, simulation, superlink

_ROOT = pathlib.Path(__file__).parents[2]
_RUN = {
  'num_clients': 4, 'num_rounds': 3, 'partition': 'dirichlet',
  'num_mc_samples': 2, 'final_num_mc_samples': 2, 'pooling': 'ws',
  'weighting': 'distance',
}  # fmt: skip


def test_a_killed_and_resumed_run_equals_a_local_run_bit_for_bit(tmp_path):
  """The processes of the killed run end too."""
  config, path = Config.of(_RUN), tmp_path / 'flower'
  flags = [f'--{name}={value}' for name, value in _RUN.items()]
  command = [sys.executable, '-m', 'experiments.run', '--engine=flower']
  with subprocess.Popen(
    [*command, *flags, f'--output_dir={path}'], cwd=_ROOT
  ) as process:
    metrics = path / 'metrics.csv'
    while not metrics.exists() or metrics.read_text('utf-8').count('\n') < 3:
      assert process.poll() is None
      time.sleep(0.05)
    started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
  assert len(started) > 5
  _, left = psutil.wait_procs(started, timeout=20)
  assert left == []

  simulation.simulate(config, path)
  assert psutil.Process().children(recursive=True) == []
  runs.Run(config, tmp_path / 'local', False).execute()
  assert fake.outcome(path) == fake.outcome(tmp_path / 'local')


@pytest.mark.parametrize(
  'code, error, message',
  [
    ('raise SystemExit(3)', superlink.FlowerError, 'ended with code 3'),
    ('import sys; sys.exit("code 2: --a=b is wrong")', ValueError, '^--a=b'),
  ],
)
def test_an_error_in_the_flower_process_is_raised_again(code, error, message):
  with pytest.raises(error, match=message):
    simulation.execute(code)


@pytest.mark.slow
def test_the_example_app_reaches_its_accuracy():
  lines = []
  simulation.execute(
    'from bfl_tf.flower import simulation; simulation.given();'
    'from experiments.flower_example import digits_app as app;'
    'simulation.run_apps(app.server_app, app.client_app, 4, 2)',
    show=lines.append,
  )
  accuracy = [line for line in lines if line.startswith('accuracy ')]
  assert float(accuracy[0].split()[1]) > 0.5


@pytest.mark.parametrize(
  'num_clients, processes, timeout, wanted',
  [(10, 2, 0.0, 10), (200, 2, 0.0, 16), (200, 32, 0.0, 64), (200, 2, 5.0, 4)],
)
def test_the_number_of_simulated_nodes_is_limited(
  monkeypatch, num_clients, processes, timeout, wanted
):
  # The machine bounds the number of processes.
  monkeypatch.setattr(os, 'sched_getaffinity', lambda _: range(8))
  config = Config(
    num_clients=num_clients, num_workers=processes, engine='flower',
    client_timeout=timeout,
  )  # fmt: skip
  assert simulation.num_nodes(config) == wanted


def test_sampled_clients_are_spread_evenly_over_the_nodes():
  assigned = nodes.SimulatedNodes(grids.Grid({7: {}, 8: {}, 9: {}}), 3)
  assert assigned([0, 3, 6]) == {0: 7, 3: 8, 6: 9}
  assert assigned(range(4)) == {0: 7, 1: 8, 2: 9, 3: 7}
