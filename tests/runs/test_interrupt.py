"""Ctrl-C is one line and code 130, SIGTERM 143; the same command goes on."""

import signal
import subprocess
import sys

import binaries
import pytest
import stopping

from bfl_tf.federation import loop

pytestmark = pytest.mark.process


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


def test_an_interrupt_before_anything_is_saved(never, tmp_path, monkeypatch):
  def interrupted(*unused):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(loop, 'initial_state', interrupted)
    with pytest.raises(
      KeyboardInterrupt, match='interrupted: nothing is saved'
    ):
      stopping.play(tmp_path)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_every_binary_ends_in_a_line():
  program = (
    'from experiments import flags\n'
    'def main():\n'
    '  raise KeyboardInterrupt\n'
    'flags.main(main)\n'
  )
  done = subprocess.run(
    [sys.executable, '-c', program],
    cwd=binaries.ROOT, capture_output=True, text=True, check=False,
  )  # fmt: skip
  assert (done.returncode, done.stderr) == (130, 'error: interrupted\n')


@pytest.mark.parametrize(
  ('number', 'why', 'code'),
  [(signal.SIGINT, 'interrupted', 130), (signal.SIGTERM, 'terminated', 143)],
)
def test_the_command(tmp_path, number, why, code):
  path = tmp_path / 'run'
  process = binaries.playing(
    path, '--num_rounds=1000', '--num_mc_samples=2', '--model=logistic',
    '--checkpoint_every=1000',
  )  # fmt: skip
  process.send_signal(number)
  _, error = process.communicate(timeout=200)
  assert process.returncode == code
  (line,) = [x for x in error.splitlines() if x]
  assert line.startswith(f'error: {why}: saved after round ')
  assert line.endswith('; the same command goes on')
  done = int(line.split('round ')[1].split(';')[0])
  assert (path / 'checkpoints' / f'state-{done}.index').exists()
