"""Flower's simulation, with its real processes: the bits of one process."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import psutil
import pytest
import stopping

from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from bfl_tf.flower import nodes as nodes_lib
from bfl_tf.flower import runs, servers, simulation
from bfl_tf.runs import directory as records

pytestmark = pytest.mark.process

_ROOT = pathlib.Path(__file__).parents[2]
_SMALL = {
  'num_clients': 4, 'num_rounds': 2, 'partition': 'dirichlet',
  'num_mc_samples': 2, 'final_num_mc_samples': 2,
}  # fmt: skip
_POINTS = {'variant': 'deterministic', 'client_optimizer': 'sgd'}
METHODS = {
  'nwa': {'clients_per_round': 3},
  'ws': {'pooling': 'ws', 'weighting': 'distance'},
  'fedbe': {
    **_POINTS, 'num_server_examples': 200, 'refine': 'distil',
    'distil.swa_start': 0.5, 'distil.swa_cycle': 0.1,
  },
  'scaffold': {
    **_POINTS, 'client_parts': 'scaffold', 'clients_per_round': 3,
  },
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path, monkeypatch):
  """Known by the home that Flower's processes are given."""
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  yield
  left = []
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      home = process.environ().get('FLWR_HOME', '')
      if home.startswith(str(tmp_path)) and process.pid != os.getpid():
        left.append(process.cmdline())
  assert left == []


# One of them often; the others over a grid without processes, and slowly.
@pytest.mark.parametrize(
  'method',
  [
    method if method == 'ws' else pytest.param(method, marks=pytest.mark.slow)
    for method in METHODS
  ],
)
def test_the_bits_of_the_local_engine(method, tmp_path):
  config = config_lib.Config.of(_SMALL | METHODS[method])
  simulation.simulate(config, tmp_path / 'flower')
  runs_lib.Run(config, tmp_path / 'local', False).play()
  flower, local = map(
    stopping.outcome, (tmp_path / 'flower', tmp_path / 'local')
  )
  assert flower == local


def test_data_are_looked_for_before_anything_starts(tmp_path, monkeypatch):
  monkeypatch.setattr(simulation, 'superlink', None)
  config, path = config_lib.Config(dataset='nothing'), tmp_path / 'run'
  with pytest.raises(ValueError, match='--dataset=nothing is unknown'):
    simulation.simulate(config, path)
  assert not path.exists()
  # Those of a finished run are needed no more.
  monkeypatch.setattr(records.RunDirectory, 'summary', lambda self: {})
  with pytest.raises(TypeError, match='not callable'):
    simulation.simulate(config, path)


@pytest.mark.slow
def test_the_binary_goes_on_where_it_was(tmp_path):
  """Rounds may be played here and there."""
  flags = [f'--{name}={value}' for name, value in _SMALL.items()]
  command = [sys.executable, '-m', 'experiments.run', *flags]
  path = tmp_path / 'run'
  done = subprocess.run(
    [*command, '--num_rounds=1', f'--output_dir={path}'], cwd=_ROOT, check=True
  )
  done = subprocess.run(
    [*command, '--engine=flower', f'--output_dir={path}'],
    cwd=_ROOT, capture_output=True, text=True, check=True,
  )  # fmt: skip
  assert 'going on after round 1' in done.stdout
  assert 'Brier score' in done.stdout
  config = config_lib.Config.of(_SMALL)
  runs_lib.Run(config, tmp_path / 'local', False).play()
  assert stopping.outcome(path) == stopping.outcome(tmp_path / 'local')


@pytest.mark.parametrize(
  'code, error', [(2, ValueError), (1, runs.FlowerError)]
)
def test_the_servers_reason_is_left_where_flower_keeps_none(
  code, error, monkeypatch, tmp_path
):
  details = 'Simulation failed with exception: An error was encountered.'
  monkeypatch.setattr(
    runs, '_status', lambda *unused: ('finished:failed', details)
  )
  path = tmp_path / 'reason.txt'
  with pytest.raises(runs.FlowerError, match='An error was encountered'):
    runs._check('here', '1', {}, str(path))
  told = {'flags': '--num_rounds=few', 'ask': False, 'reason-file': str(path)}
  with pytest.raises(servers.ServerError, match='num_rounds=few'):
    servers.main(None, types.SimpleNamespace(run_config=told))
  path.write_text(path.read_text().replace('code 2', f'code {code}'))
  with pytest.raises(error, match='num_rounds=few'):
    runs._check('here', '1', {}, str(path))


def test_the_server_is_told_where_to_leave_it(monkeypatch):
  told, checked = [], []

  def streamed(command, *unused):
    told.extend(pathlib.Path(command[-1]).read_text().splitlines())
    return '1', []

  monkeypatch.setattr(runs, '_streamed', streamed)
  monkeypatch.setattr(runs, '_check', lambda *given: checked.extend(given))
  runs.play(config_lib.Config(), 'run', 'here', {}, reason_file='f', window=3)
  assert 'reason-file = "f"' in told and 'window = 3' in told
  assert checked[-1] == 'f'


@pytest.mark.parametrize(
  'flags, code, said',
  [
    ('--dataset=nothing', 2, '--dataset=nothing is unknown.'),
    # Whose server alone sees what is in it.
    pytest.param(
      '--dataset={there}/no_label.csv',
      2,
      "no_label.csv has no column 'label'",
      marks=pytest.mark.slow,
    ),
    ('--superlink=nowhere', 2, "SuperLink connection 'nowhere' not found"),
    ('--superlink=closed', 2, 'Connection to the SuperLink is unavailable'),
    ('--engine=local --superlink=x', 2, '--superlink needs --engine=flower'),
    ('--engine=local --client_timeout=9', 2, 'needs --engine=flower: a train'),
  ],
)
def test_what_is_wrong_is_one_line(flags, code, said, tmp_path):
  port = simulation.free_port()
  (tmp_path / 'config.toml').write_text(
    f'[superlink.closed]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
  )
  (tmp_path / 'no_label.csv').write_text('x,y\n1,2\n')
  path = tmp_path / 'run'
  done = subprocess.run(
    [sys.executable, '-m', 'experiments.run', '--engine=flower',
     *flags.format(there=tmp_path).split(), f'--output_dir={path}'],
    cwd=_ROOT, capture_output=True, text=True, check=False,
    env=os.environ | {'FLWR_HOME': str(tmp_path)},
  )  # fmt: skip
  lines = [line for line in done.stderr.splitlines() if 'error:' in line]
  assert done.returncode == code and len(lines) == 1, done.stderr
  assert said in lines[0]
  assert 'Traceback' not in done.stderr and not path.exists()


def test_without_the_extra(tmp_path):
  (tmp_path / 'flwr.py').write_text(
    "raise ModuleNotFoundError('No module named flwr', name='flwr')\n"
  )
  done = subprocess.run(
    [sys.executable, '-m', 'experiments.run', '--engine=flower',
     f'--output_dir={tmp_path / "run"}'],
    cwd=_ROOT, capture_output=True, text=True, check=False,
    env=os.environ | {'PYTHONPATH': f'{tmp_path}:{_ROOT}'},
  )  # fmt: skip
  assert done.returncode == 2
  assert done.stderr.splitlines()[-1] == (
    'error: --engine=flower needs flwr, of the extra: pip install '
    "'bfl_tf[flower]'."
  )


def test_who_lost_its_parent_ends_too():
  """As Ray's processes may when a run is over."""
  leave = 'import subprocess; subprocess.Popen(["sleep", "100"])'
  with simulation.superlink('--simulation') as environment:
    subprocess.run([sys.executable, '-c', leave], env=environment, check=True)


def test_the_example_app():
  lines = []
  with simulation.superlink('--simulation') as environment:
    runs.submit(
      _ROOT / 'experiments' / 'flower_example', 'here', lines.append,
      environment, 'num-supernodes=4 client-resources-num-cpus=1',
    )  # fmt: skip
  accuracy = [line for line in lines if line.startswith('accuracy ')]
  assert float(accuracy[0].split()[1]) > 0.5
  source = _ROOT / 'experiments' / 'flower_example' / 'digits_app.py'
  assert len(source.read_text().splitlines()) < 60


@pytest.mark.parametrize(
  'num_clients, processes, timeout, nodes',
  [
    (10, 2, 0.0, 10),
    (200, 2, 0.0, 16),
    (200, 32, 0.0, 64),
    (200, 2, 5.0, 4),
    (3, 2, 5.0, 3),
  ],
)
def test_orders_out_at_a_time(num_clients, processes, timeout, nodes):
  config = config_lib.Config(
    num_clients=num_clients, engine='flower', client_timeout=timeout
  )
  assert simulation.num_nodes(config, processes) == nodes


def test_sampled_clients_have_nodes_of_their_own():
  nodes = nodes_lib.Simulated([7, 8, 9])
  assert nodes([0, 3, 6]) == {0: 7, 3: 8, 6: 9}
  assert nodes(range(4)) == {0: 7, 1: 8, 2: 9, 3: 7}
