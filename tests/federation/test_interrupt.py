"""Ctrl-C is one line and code 130; the same command goes on."""

import os
import signal
import time

import binaries
import pytest
import stopping

from bfl_tf.federation import loop


def test_an_interrupt_saves_what_was_played(never, tmp_path):
  config = stopping.CONFIG.replace(checkpoint_every=100)
  original, calls = loop.federated_round, []

  def interrupted(*args, **kwargs):
    calls.append(1)
    if len(calls) == 3:
      raise KeyboardInterrupt
    return original(*args, **kwargs)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(loop, 'federated_round', interrupted)
    with pytest.raises(KeyboardInterrupt, match='saved after round 2; the sam'):
      stopping.play(tmp_path, config)
  assert (tmp_path / 'checkpoints' / 'state-2.index').exists()
  stopping.play(tmp_path, config)
  assert stopping.outcome(tmp_path) == never


def test_the_command(tmp_path):
  path = tmp_path / 'run'
  process = binaries.start(
    'experiments.run', f'--output_dir={path}', '--num_rounds=1000',
    '--num_mc_samples=2', '--model=logistic', '--checkpoint_every=1000',
  )  # fmt: skip
  metrics, deadline = path / 'metrics.csv', time.monotonic() + 200
  while not (metrics.exists() and len(metrics.read_text().split('\n')) > 3):
    assert process.poll() is None, process.communicate()[1]
    assert time.monotonic() < deadline
    time.sleep(0.05)
  os.kill(process.pid, signal.SIGINT)
  _, error = process.communicate(timeout=200)
  assert process.returncode == 130
  (line,) = [x for x in error.splitlines() if x]
  assert line.startswith('error: interrupted: saved after round ')
  assert line.endswith('; the same command goes on')
  done = int(line.split('round ')[1].split(';')[0])
  assert (path / 'checkpoints' / f'state-{done}.index').exists()
