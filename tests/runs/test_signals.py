"""Real processes: one is killed, one interrupted, and the command goes on."""

import signal

import binaries
import fake
import pytest

from bfl_tf import config as config_lib
from bfl_tf.runs import checkpoints

pytestmark = pytest.mark.process


def test_sigkill(tmp_path):
  settings = {'model': 'logistic', 'num_rounds': 12, 'num_mc_samples': 2}
  flags = [f'--{name}={value}' for name, value in settings.items()]
  process = binaries.playing(tmp_path / 'killed', *flags)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  assert process.returncode == -signal.SIGKILL
  assert not (tmp_path / 'killed' / 'summary.json').exists()
  for name in ('killed', 'reference'):
    fake.train(tmp_path / name, config_lib.Config.of(settings))
  assert fake.outcome(tmp_path / 'killed') == fake.outcome(
    tmp_path / 'reference'
  )


def test_sigint(tmp_path):
  process = binaries.playing(
    tmp_path, '--num_rounds=1000', '--num_mc_samples=2', '--model=logistic',
    '--checkpoint_every=1000',
  )  # fmt: skip
  process.send_signal(signal.SIGINT)
  _, error = process.communicate(timeout=200)
  assert process.returncode == 130
  (line,) = [line for line in error.splitlines() if line]
  done = checkpoints.restore(tmp_path).round
  assert line.startswith('error: interrupted') and f'round {done};' in line
