"""Tests of the commands of docs/deployment.md, with TLS and keys.

A SuperLink and three SuperNodes run as processes on this machine. Every process
ends with its test.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import fake
import psutil
import pytest
import wines

from bfl_tf import runs

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / 'docs' / 'deployment.md').read_text('utf-8')
# Seconds. A node starts one process per message, which is slow on some cores.
_PATIENCE = 600
_RUN = [
  '--num_clients=3', '--num_mc_samples=2',
  '--final_num_mc_samples=2', '--variant=deterministic',
  '--client_parts=scaffold', '--client_optimizer=sgd',
  '--client_learning_rate=0.05', '--noaugment',
]  # fmt: skip


def step_text(name):
  step = rf'<!-- tested: {name} -->\n```\w+\n(.*?)```'
  return re.search(step, _PAGE, re.S)[1]


def free_port():
  with socket.socket() as found:
    found.bind(('127.0.0.1', 0))
    return found.getsockname()[1]


class Federation:
  """The processes of the page, in a directory.

  Attributes:
    files: Data file by number of the node; empty for a public data set.
  """

  def __init__(self, path, files=()):
    self.path, self.files, self.processes = path, files, {}
    self.port = str(free_port())
    self.environment = os.environ | {
      'FLWR_HOME': str(path / 'home'),
      'FLWR_TELEMETRY_ENABLED': '0',
      'FLWR_DISABLE_UPDATE_CHECK': '1',
      'PATH': f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}',
      'PYTHONPATH': os.pathsep.join(sys.path),
      'TF_CPP_MIN_LOG_LEVEL': '3',
      'COLUMNS': '300',
    }

  def text(self, name, number=0):
    changes = {
      '/srv/federation': str(self.path),
      '8000': self.port, '9100': str(free_port()),
      '0.0.0.0': '127.0.0.1', 'node0': f'node{number}',
      'partition-id=0': f'partition-id={number}',
    }  # fmt: skip
    if number < len(self.files):
      changes['partition-id=0'] += f' data="{self.files[number]}"'
    text = step_text(name)
    for old, new in changes.items():
      text = text.replace(old, new)
    return text

  def do(self, name, number=0, timeout=60):
    done = subprocess.run(
      ['bash', '-e', '-c', self.text(name, number)],
      cwd=self.path, env=self.environment, check=False, capture_output=True,
      text=True, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

  def begin(self, key, name, number=0):
    """Starts a command of the page; its output goes to a file."""
    with (self.path / f'{key}.txt').open('a', encoding='utf-8') as log:
      self.processes[key] = subprocess.Popen(
        ['bash', '-c', f'exec {self.text(name, number)}'],
        cwd=self.path, env=self.environment, stdout=log, stderr=log,
        start_new_session=True,
      )  # fmt: skip
    return self.processes[key]

  def end(self, key):
    process = self.processes.pop(key)
    with contextlib.suppress(psutil.NoSuchProcess):
      below = psutil.Process(process.pid).children(recursive=True)
      for one in [psutil.Process(process.pid), *below]:
        with contextlib.suppress(psutil.NoSuchProcess):
          one.send_signal(signal.SIGKILL)
    process.wait()

  def begin_server(self):
    self.begin('superlink', 'superlink')
    self.until('superlink', 'startup complete')

  def until(self, key, words):
    deadline = time.monotonic() + 60
    while words not in (out := (self.path / f'{key}.txt').read_text('utf-8')):
      assert time.monotonic() < deadline, out
      time.sleep(0.1)

  def run(self, output_dir, *flags, **kwargs):
    """Starts `bfl-tf run` on the SuperLink."""
    command = [sys.executable, '-m', 'experiments.run', '--engine=flower']
    command += ['--superlink=hospitals', f'--output_dir={output_dir}']
    return subprocess.Popen(
      [*command, *_RUN, *flags], cwd=self.path, env=self.environment,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs
    )  # fmt: skip


@pytest.fixture(scope='module')
def hospitals(tmp_path_factory):
  with started(tmp_path_factory.mktemp('hospitals')) as made:
    yield made


@contextlib.contextmanager
def started(path, files=()):
  """Starts a SuperLink and three SuperNodes."""
  made = Federation(path, files)
  (made.path / 'home').mkdir()
  (made.path / 'home' / 'config.toml').write_text(made.text('connection'))
  try:
    made.do('certificates')
    made.begin_server()
    for number in range(3):
      made.do('keys', number)
      made.do('register', number)
      made.begin(f'node{number}', 'supernode', number)
    yield made
  finally:
    for key in list(made.processes):
      made.end(key)


def rows(path):
  """Returns the number of completed rounds."""
  metrics = path / 'metrics.csv'
  return metrics.read_text('utf-8').count('\n') - 1 if metrics.exists() else 0


def wait_for(process, path, number):
  deadline = time.monotonic() + _PATIENCE
  while rows(path) < number:
    assert process.poll() is None, process.communicate()[0]
    assert time.monotonic() < deadline
    time.sleep(0.05)


@pytest.mark.slow
def test_a_run_that_resumes_after_a_server_crash_equals_a_local_run(
  hospitals, tmp_path
):
  assert '--superlink=hospitals' in step_text('run').split()
  path = tmp_path / 'run'
  # In the second round, nodes read their memories of the first.
  flags = ['--dataset=digits', '--num_rounds=2']
  first = hospitals.run(path, *flags)
  wait_for(first, path, 2)
  hospitals.end('superlink')
  out, _ = first.communicate(timeout=120)
  assert first.returncode == 1, out
  assert out.splitlines()[-1].startswith('error: --superlink=hospitals'), out
  assert not (path / 'summary.json').exists()

  hospitals.begin_server()
  again = hospitals.run(path, *flags)
  out, _ = again.communicate(timeout=_PATIENCE)
  assert again.returncode == 0, out
  assert 'going on after round' in out and 'round 2/2' in out
  assert 'bfl-tf/bfl-tf-app' in hospitals.do('list')
  config = runs.read_config(path).replace(engine='local')
  runs.Run(config, tmp_path / 'alone', False).execute()
  assert fake.outcome(path) == fake.outcome(tmp_path / 'alone')


def test_a_deployed_run_reports_scores_by_site(tmp_path):
  *files, server = wines.wine(tmp_path)
  with started(tmp_path, files) as made:
    process = made.run(
      tmp_path / 'wine', f'--dataset={server}', '--partition=natural',
      # In the second round, nodes read their memories of the first.
      '--num_rounds=2', '--calibration_fraction=0.3',
    )  # fmt: skip
    out, _ = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 0, out
    out = made.do('sites', timeout=300)
  assert 'worst site' in out and '90 % sets: the most probable' in out
  assert str(tmp_path / 'wine' / 'sites') in out
