"""Stopped anywhere and started again is never stopped, bit for bit."""

import csv
import dataclasses
import json
import os
import signal
import time
from typing import NamedTuple

import binaries
import numpy as np
import pytest

from bfl_tf import federation, plots
from bfl_tf.federation import checkpoints, loop, records

CONFIG = federation.Config(
  dataset='toys:blobs',
  model='logistic',
  num_clients=5,
  clients_per_round=3,
  client_parts=('toys:Counter',),  # Has a memory.
  server_step=('momentum',),  # Has a slot.
  num_rounds=4,
  num_mc_samples=2,
  final_num_mc_samples=3,
  num_workers=1,
)
BUILT = {}


class Slot(NamedTuple):
  """What a stage carries: rounds so far, and something empty."""

  rounds: np.ndarray
  nothing: dict


class Stage:
  """A user's stage whose slot is no array."""

  name = 'stage'
  statistics = ()

  def init(self, model):
    return Slot(np.zeros([2, 1]), {})

  def __call__(self, state, reference, pooled, statistics, seed):
    slot = state.slots[self.name]
    slot = slot._replace(rounds=slot.rounds + 1)
    info = {'stage': slot.rounds.sum() + len(slot.nothing)}
    return state._replace(slots={**state.slots, self.name: slot}), info


class Killed(BaseException):
  """As good as a signal: nothing handles it."""


def play(path, config=CONFIG):
  return federation.Run(config, path, False, BUILT).play()


def outcome(path):
  """All that a run leaves but for times and memory."""
  with open(path / 'metrics.csv', newline='') as file:
    header, *rows = csv.reader(file)
  kept = [i for i, name in enumerate(header) if not timing(name)]
  with np.load(path / 'predictions.npz') as archive:
    arrays = {name: archive[name].tobytes() for name in archive.files}
  summary = json.loads((path / 'summary.json').read_text())
  table = [[row[i] for i in kept] for row in [header, *rows]]
  return table, arrays, summary['final'], summary['rounds']


def timing(column):
  return column.endswith('_seconds') or column.startswith('peak_memory')


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
  monkeypatch.setattr(plots, 'draw_run', lambda path: None)


@pytest.fixture(scope='module')
def never(tmp_path_factory):
  """The outcome of a run that nobody stopped."""
  path = tmp_path_factory.mktemp('never')
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, 'draw_run', lambda path: None)
    play(path)
  return outcome(path)


def stop(monkeypatch, owner, name, call, after=False):
  """Stops a run at a call of a function, before or after its work is done."""
  original, calls = getattr(owner, name), []

  def stopping(*args, **kwargs):
    calls.append(name)
    if len(calls) == call and not after:
      raise Killed
    result = original(*args, **kwargs)
    if len(calls) == call:
      raise Killed
    return result

  monkeypatch.setattr(owner, name, stopping)


def stopped(path, *where, config=CONFIG, **how):
  with pytest.MonkeyPatch.context() as patch:
    stop(patch, *where, **how)
    with pytest.raises(Killed):
      play(path, config)


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(
  'owner, name, call',
  [
    *[(loop, 'federated_round', call) for call in (1, 3)],
    *[(records.RunDirectory, 'add', call) for call in (1, 2, 5)],
    *[(checkpoints, 'save', call) for call in (1, 2, 5)],
    (records.RunDirectory, 'write_partition', 1),
    (records.RunDirectory, 'write_predictions', 1),
    (records.RunDirectory, 'finish', 1),
  ],
)
def test_stopped_anywhere(never, tmp_path, owner, name, call, after):
  stopped(tmp_path, owner, name, call, after=after)
  play(tmp_path)
  assert outcome(tmp_path) == never


# flags.txt, partition.csv, 5 rows, predictions.npz, rows, summary.json.
@pytest.mark.parametrize('call', range(1, 11))
def test_stopped_before_a_file_is_in_its_place(never, tmp_path, call):
  stopped(tmp_path, os, 'replace', call)
  play(tmp_path)
  assert outcome(tmp_path) == never


def test_stopped_while_it_draws(tmp_path, monkeypatch):
  drawn = []
  stopped(tmp_path, plots, 'draw_run', 1)
  monkeypatch.setattr(plots, 'draw_run', drawn.append)
  play(tmp_path)
  assert drawn == [tmp_path]


def test_stopped_twice_between_sparse_checkpoints(never, tmp_path):
  config = dataclasses.replace(CONFIG, checkpoint_every=3)
  stopped(tmp_path, records.RunDirectory, 'add', 3, config=config)
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 0
  stopped(tmp_path, loop, 'federated_round', 4, config=config)
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 3
  play(tmp_path, config)
  assert outcome(tmp_path) == never


@pytest.mark.parametrize('broken', [['3'], ['2', '3']])
@pytest.mark.parametrize('file', ['data-00000-of-00001', 'index'])
def test_a_run_with_corrupt_checkpoints_ends_with_the_same_bits(
  tmp_path, never, caplog, broken, file
):
  stopped(tmp_path, loop, 'federated_round', 4)
  for number in broken:
    path = tmp_path / 'checkpoints' / f'state-{number}.{file}'
    path.write_bytes(b'')
  play(tmp_path)
  assert caplog.text.count('is corrupt') == len(broken)
  assert outcome(tmp_path) == never


def test_a_slot_of_any_shape_goes_on(tmp_path):
  config = dataclasses.replace(CONFIG, server_step=(f'{__name__}:Stage',))
  play(tmp_path / 'never', config)
  path = tmp_path / 'stopped'
  stopped(path, loop, 'federated_round', 3, config=config)
  play(path, config)
  assert outcome(path) == outcome(tmp_path / 'never')


def test_num_workers_may_change(never, tmp_path):
  stopped(tmp_path, loop, 'federated_round', 3)
  play(tmp_path, dataclasses.replace(CONFIG, num_workers=2))
  assert outcome(tmp_path) == never


def test_too_few_clients_save_the_state(never, tmp_path, monkeypatch):
  config = dataclasses.replace(CONFIG, min_clients=3, checkpoint_every=4)
  run = federation.Run(config, tmp_path, False, BUILT)
  defects = iter([None] * 7 + ['is bad'] + [None] * 9)
  with monkeypatch.context() as patch:
    patch.setattr(loop, 'find_defect', lambda *unused: next(defects))
    with pytest.raises(federation.TooFewClientsError, match='round 2: 2 acc'):
      run.play()
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 2
  play(tmp_path, config)
  assert outcome(tmp_path) == never


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
  summary = play(tmp_path)
  times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')}
  monkeypatch.setattr(loop, 'federated_round', None)
  assert play(tmp_path) == summary
  # Also with another number of workers.
  assert play(tmp_path, dataclasses.replace(CONFIG, num_workers=2)) == summary
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')} == times


def test_sigkill(tmp_path):
  settings = {'num_rounds': 12, 'num_mc_samples': 2, 'hidden_units': (16,)}
  flags = ['--num_rounds=12', '--num_mc_samples=2', '--hidden_units=16']
  config = federation.Config(**settings)
  reference = tmp_path / 'reference'
  play(reference, config)

  killed = tmp_path / 'killed'
  process = binaries.start('experiments.run', f'--output_dir={killed}', *flags)
  metrics, deadline = killed / 'metrics.csv', time.monotonic() + 120
  while not (metrics.exists() and len(metrics.read_text().split('\n')) > 5):
    assert process.poll() is None, process.communicate()[1]
    assert time.monotonic() < deadline
    time.sleep(0.01)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  assert process.returncode == -signal.SIGKILL
  assert not (killed / 'summary.json').exists()
  play(killed, config)
  assert outcome(killed) == outcome(reference)
