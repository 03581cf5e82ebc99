"""Stopped anywhere and started again is never stopped, bit for bit."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import stopping
import toys

from bfl_tf import federation, plots
from bfl_tf import runs as runs_lib
from bfl_tf.federation import admission, engine, loop
from bfl_tf.runs import checkpoints
from bfl_tf.runs import directory as records


class Nested:
  """A user's stage whose slot is a dict of arrays."""

  name, statistics = 'nested', ()

  def init(self, model):
    return {'rounds': np.zeros([2, 1]), 'more': {'last': np.int64(0)}}

  def __call__(self, state, reference, pooled, statistics, seed):
    slot = state.slots[self.name]
    slot = {'rounds': slot['rounds'] + 1, 'more': {'last': seed[0]}}
    info = {'nested': slot['rounds'].sum(), 'last': slot['more']['last']}
    return state._replace(slots={**state.slots, self.name: slot}), info


class Empty(Nested):
  """One that carries nothing, and looks."""

  name = 'empty'

  def init(self, model):
    return {}

  def __call__(self, state, reference, pooled, statistics, seed):
    return state, {'empty': len(state.slots[self.name])}


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(
  'owner, name, call',
  [
    *[(loop, 'federated_round', call) for call in (1, 3)],
    *[(records.RunDirectory, 'add', call) for call in (1, 2, 5)],
    *[(checkpoints, 'save', call) for call in (1, 2, 5)],
    (records.RunDirectory, 'write_partition', 1),
    (records.RunDirectory, 'write_arrays', 1),
    (records.RunDirectory, 'finish', 1),
  ],
)
def test_stopped_anywhere(never, tmp_path, owner, name, call, after):
  stopping.stopped(tmp_path, owner, name, call, after=after)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_stopped_while_it_draws(tmp_path, monkeypatch):
  drawn = []
  stopping.stopped(tmp_path, plots, 'draw_run', 1)
  monkeypatch.setattr(
    plots, 'draw_run', lambda path, bins: drawn.append(path) or []
  )
  stopping.play(tmp_path)
  assert drawn == [tmp_path]


def test_stopped_twice_between_sparse_checkpoints(never, tmp_path):
  config = dataclasses.replace(stopping.CONFIG, checkpoint_every=3)
  stopping.stopped(tmp_path, records.RunDirectory, 'add', 3, config=config)
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 0
  stopping.stopped(tmp_path, loop, 'federated_round', 4, config=config)
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 3
  stopping.play(tmp_path, config)
  assert stopping.outcome(tmp_path) == never


@pytest.mark.parametrize('stage', ['Nested', 'Empty'])
def test_a_users_slot_goes_on(tmp_path, stage):
  stages = (f'{__name__}:{stage}',)
  config = dataclasses.replace(stopping.CONFIG, server_step=stages)
  stopping.play(tmp_path / 'never', config)
  path = tmp_path / 'stopped'
  stopping.stopped(path, loop, 'federated_round', 3, config=config)
  stopping.play(path, config)
  assert stopping.outcome(path) == stopping.outcome(tmp_path / 'never')


def test_num_workers_may_change(never, tmp_path):
  stopping.stopped(tmp_path, loop, 'federated_round', 3)
  stopping.play(tmp_path, dataclasses.replace(stopping.CONFIG, num_workers=2))
  assert stopping.outcome(tmp_path) == never


def test_too_few_clients_save_the_state(never, tmp_path, monkeypatch):
  config = dataclasses.replace(
    stopping.CONFIG, min_clients=3, checkpoint_every=4
  )
  run = runs_lib.Run(config, tmp_path, False, stopping.BUILT)
  # Who was bad is asked once more.
  defects = iter([None] * 7 + ['is bad', None, 'is bad'] + [None] * 9)
  with monkeypatch.context() as patch:
    patch.setattr(admission, 'find_defect', lambda *unused: next(defects))
    with pytest.raises(federation.TooFewClientsError, match='round 2: 2 acc'):
      run.play()
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 2
  stopping.play(tmp_path, config)
  assert stopping.outcome(tmp_path) == never


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
  summary = stopping.play(tmp_path)
  times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')}
  monkeypatch.setattr(loop, 'federated_round', None)
  assert stopping.play(tmp_path) == summary
  # Also with another number of workers.
  assert (
    stopping.play(tmp_path, dataclasses.replace(stopping.CONFIG, num_workers=2))
    == summary
  )
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')} == times


def test_memories_of_the_other_side_are_not_forgotten(tmp_path):
  class Elsewhere:
    """An engine whose clients keep what they remember."""

    def __call__(self, *arguments):
      return engine.local(*arguments)

    def like(self, method):
      return method.result_like._replace(memory={'round': None})

  stopping.play(tmp_path)
  before = stopping.outcome(tmp_path)
  longer = stopping.CONFIG.replace(num_rounds=6)
  run = runs_lib.Run(
    longer, tmp_path, False, stopping.BUILT, engine=Elsewhere()
  )
  with pytest.raises(federation.OtherSideError, match='on the other side: go'):
    run.play()
  # What its end wrote is there still.
  assert stopping.outcome(tmp_path) == before
  assert (tmp_path / 'predictions.npz').exists()
  assert stopping.play(tmp_path, longer)['rounds'] == 6


@dataclasses.dataclass(frozen=True)
class Forgetful(toys.Idle):
  """A part that could remember, and has nothing to."""

  name: ClassVar[str] = 'forgetful'

  def init_memory(self, model):
    return {}


def test_a_memory_of_nothing_is_no_other_side(tmp_path):
  parts = ('toys:Counter', 'federation.test_resume:Forgetful')
  config = stopping.CONFIG.replace(client_parts=parts)
  stopping.stopped(tmp_path, loop, 'federated_round', 3, config=config)
  assert stopping.play(tmp_path, config)['rounds'] == 4
