"""Files half written, checkpoints broken, a process killed: the same bits."""

import os
import signal

import binaries
from matplotlib import figure
import pytest
import stopping

from bfl_tf import config as config_lib
from bfl_tf import plots
from bfl_tf.federation import loop
from bfl_tf.plots import drawing

pytestmark = pytest.mark.process

# Of .digests and then of flags.txt, task.json, partition.csv, 5 rows,
# predictions.npz, rows twice; two figures and .digests of both; of .digests and
# then of summary.json.
NUM_RENAMES = 2 * 11 + 2 + 1 + 2


def drawn(path, *unused):
  """As quick as a figure can be."""
  (path / 'plots').mkdir(exist_ok=True)
  return [
    drawing._write(figure.Figure((1, 1)), path / 'plots', name)
    for name in ('first', 'second')
  ]


@pytest.mark.parametrize('call', range(1, NUM_RENAMES + 1))
def test_stopped_before_a_file_is_in_its_place(
  never, tmp_path, monkeypatch, call
):
  monkeypatch.setattr(plots, 'draw_run', drawn)
  stopping.stopped(tmp_path, os, 'replace', call)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never
  assert len(list((tmp_path / 'plots').iterdir())) == 2


def test_these_are_all_files(tmp_path, monkeypatch):
  monkeypatch.setattr(plots, 'draw_run', drawn)
  calls, replace = [], os.replace
  monkeypatch.setattr(
    os, 'replace', lambda *names: (calls.append(names), replace(*names))[1]
  )
  stopping.play(tmp_path)
  assert len(calls) == NUM_RENAMES


@pytest.mark.parametrize('broken', [['3'], ['2', '3']])
@pytest.mark.parametrize('file', ['data-00000-of-00001', 'index'])
def test_a_run_with_corrupt_checkpoints_ends_with_the_same_bits(
  tmp_path, never, caplog, broken, file
):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  for number in broken:
    path = tmp_path / 'checkpoints' / f'state-{number}.{file}'
    path.write_bytes(b'')
  stopping.play(tmp_path)
  assert caplog.text.count('is corrupt') == len(broken)
  assert stopping.outcome(tmp_path) == never


def test_sigkill(tmp_path):
  settings = {
    'num_rounds': 12, 'num_mc_samples': 2, 'mlp.hidden_units': (16,),
  }  # fmt: skip
  flags = ['--num_rounds=12', '--num_mc_samples=2', '--mlp.hidden_units=16']
  config = config_lib.Config.of(settings)
  reference = tmp_path / 'reference'
  stopping.play(reference, config)

  killed = tmp_path / 'killed'
  process = binaries.playing(killed, *flags)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  assert process.returncode == -signal.SIGKILL
  assert not (killed / 'summary.json').exists()
  stopping.play(killed, config)
  assert stopping.outcome(killed) == stopping.outcome(reference)
