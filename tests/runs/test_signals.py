"""Tests of signals to a process."""

import signal

import binaries
import pytest

from bfl_tf.runs import checkpoints

pytestmark = pytest.mark.process


def test_sigint_saves_the_run_and_exits_with_130(tmp_path):
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
