"""Tests that resumed runs equal uninterrupted runs, bit for bit."""

import dataclasses
import os
import resource
from typing import ClassVar

import fake
import numpy as np
import pytest
import toys

from bfl_tf import federation, parts, plots
from bfl_tf.federation import engine, loop
from bfl_tf.runs import checkpoints, directory, tables


@pytest.fixture(scope='module')
def never(tmp_path_factory):
  """The outcome of a run without interruption."""
  path = tmp_path_factory.mktemp('never')
  fake.execute(path)
  return fake.outcome(path)


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(
  'owner, name, call',
  [
    (loop, 'initial_state', 1),
    *[(loop, 'federated_round', call) for call in (1, 3)],
    *[(tables.Rows, 'add', call) for call in (1, 5)],
    *[(checkpoints, 'save', call) for call in (1, 5)],
    (directory.RunDirectory, 'write_partition', 1),
    (directory.RunDirectory, 'write_arrays', 1),
    (directory.RunDirectory, 'finish', 1),
  ],
)
def test_a_run_stopped_anywhere_resumes_identically(
  never, tmp_path, owner, name, call, after
):
  fake.stopped(tmp_path, owner, name, call, after=after)
  fake.execute(tmp_path)
  assert fake.outcome(tmp_path) == never


def test_a_run_stopped_before_any_fsync_resumes_identically(tmp_path):
  """Every written file is synchronized to the disk."""
  config = fake.CONFIG.replace(num_rounds=2, checkpoint_every=2)
  fake.execute(tmp_path / 'never', config)
  never = fake.outcome(tmp_path / 'never')
  with pytest.MonkeyPatch.context() as patch:
    calls, fsync = [], os.fsync
    patch.setattr(os, 'fsync', lambda file: (calls.append(1), fsync(file)))
    fake.execute(tmp_path / 'counted', config)
  # Five files (flags, task, partition, predictions, summary), the folder after
  # the task, three rows, two checkpoints, and the memories of the second.
  assert len(calls) == 5 + 1 + 3 + 2 + 1
  for call in range(1, len(calls) + 1):
    path = tmp_path / str(call)
    fake.stopped(path, os, 'fsync', call, config=config)
    # A killed `bfl-tf report` leaves this folder.
    (path / '.sites.tmp').mkdir()
    fake.execute(path, config)
    assert fake.outcome(path) == never
    assert not [*path.glob('.*.tmp')]


def test_a_run_stopped_while_drawing_only_repeats_the_figures(
  tmp_path, monkeypatch
):
  def execute(path, config):
    fake.execute(path, config, draw_plots=True)

  fake.stopped(tmp_path, plots, 'draw_run', 1, execute=execute)
  drawn = []
  monkeypatch.setattr(plots, 'draw_run', lambda path, bins: drawn.append(path))
  monkeypatch.setattr(loop, 'federated_round', None)
  fake.execute(tmp_path, draw_plots=True)
  assert drawn == [tmp_path]


def test_a_run_stopped_twice_between_checkpoints_resumes_identically(
  never, tmp_path
):
  config = fake.CONFIG.replace(checkpoint_every=3)
  fake.stopped(tmp_path, tables.Rows, 'add', 3, config=config)
  assert checkpoints.restore(tmp_path).round == 0
  fake.stopped(tmp_path, loop, 'federated_round', 4, config=config)
  assert checkpoints.restore(tmp_path).round == 3
  fake.execute(tmp_path, config)
  assert fake.outcome(tmp_path) == never


class Nested(parts.Server):
  """A custom part whose slot is a dict of arrays."""

  name = 'nested'

  def slot(self, model):
    return {'rounds': np.zeros([2, 1]), 'more': {'last': np.int64(0)}}

  def step(self, model, sums, slot, ctx):
    rounds, last = slot['rounds'] + 1, ctx.seed[0]
    slot = {'rounds': rounds, 'more': {'last': last}}
    return parts.Outcome(model, slot, {'nested': rounds.sum(), 'last': last})


@dataclasses.dataclass(frozen=True)
class Forgetful(toys.Idle):
  """A part with an empty memory."""

  name: ClassVar[str] = 'forgetful'

  def memory(self, model):
    return {}


def test_slots_and_memories_of_custom_parts_are_resumed(tmp_path):
  config = fake.CONFIG.replace(
    server_parts=(f'{__name__}:Nested',),
    client_parts=('toys:Counter', f'{__name__}:Forgetful'),
  )
  fake.execute(tmp_path / 'never', config)
  path = tmp_path / 'stopped'
  fake.stopped(path, loop, 'federated_round', 3, config=config)
  fake.execute(path, config)
  assert fake.outcome(path) == fake.outcome(tmp_path / 'never')


def test_a_run_that_stops_with_too_few_clients_saves_its_state(never, tmp_path):
  config = fake.CONFIG.replace(min_clients=3, checkpoint_every=4)

  @toys.Engine
  def failing(experiment, state, clients):
    for client, update in fake.engine(experiment, state, clients):
      bad = state.round == 2 and client != clients[0]
      yield client, None if bad else update

  with pytest.raises(federation.TooFewClientsError, match='min_clients'):
    fake.execute(tmp_path, config, engine=failing)
  assert checkpoints.restore(tmp_path).round == 2
  fake.execute(tmp_path, config)
  assert fake.outcome(tmp_path) == never


def test_an_interrupted_run_saves_its_completed_rounds(never, tmp_path):
  config = fake.CONFIG.replace(checkpoint_every=100)
  how = {'config': config, 'error': KeyboardInterrupt}
  why = fake.stopped(tmp_path, loop, 'initial_state', 1, **how)
  assert 'no round is saved' in str(why)
  why = fake.stopped(tmp_path, loop, 'federated_round', 3, **how)
  assert 'saved after round 2' in str(why)
  assert checkpoints.restore(tmp_path).round == 2
  fake.execute(tmp_path, config)
  assert fake.outcome(tmp_path) == never


# NumPy 2.0 leaves the file of a failed `savez` open.
@pytest.mark.filterwarnings('ignore:.*ZipFile.__del__')
@pytest.mark.parametrize('number, message', [(0, 'no round'), (3, '2')])
def test_a_run_stopped_by_a_full_disk_resumes_identically(
  never, tmp_path, monkeypatch, number, message
):
  """Completed rounds are saved, and the run can resume."""
  limit = resource.getrlimit(resource.RLIMIT_FSIZE)
  original = fake.evaluate

  def limited(experiment, played, last):
    if played.state.round == number:
      resource.setrlimit(resource.RLIMIT_FSIZE, (200, limit[1]))
    return original(experiment, played, last)

  monkeypatch.setattr(fake, 'evaluate', limited)
  try:
    with pytest.raises(federation.MachineError, match=message):
      fake.execute(tmp_path)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
  monkeypatch.undo()
  fake.execute(tmp_path)
  assert fake.outcome(tmp_path) == never


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
  summary = fake.execute(tmp_path)
  times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')}
  monkeypatch.setattr(loop, 'federated_round', None)
  assert fake.execute(tmp_path) == summary
  assert fake.execute(tmp_path, fake.CONFIG.replace(num_workers=2)) == summary
  monkeypatch.setattr(os, 'access', lambda path, mode: mode != os.W_OK)
  assert fake.execute(tmp_path) == summary
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')} == times


def test_a_run_with_memories_on_the_server_rejects_another_engine(tmp_path):
  class Elsewhere(engine.Engine):
    """An engine whose clients keep their memories."""

    def __call__(self, *arguments):
      return fake.engine(*arguments)

    def expected_spec(self, plan):
      return plan.result_spec._replace(memory={'round': None})

  fake.execute(tmp_path)
  before = fake.outcome(tmp_path)
  longer = fake.CONFIG.replace(num_rounds=6)
  with pytest.raises(engine.OtherSideError, match='--engine'):
    fake.execute(tmp_path, longer, engine=Elsewhere())
  # The files of the finished run are still there.
  assert fake.outcome(tmp_path) == before
  assert fake.execute(tmp_path, longer)['rounds'] == 6
