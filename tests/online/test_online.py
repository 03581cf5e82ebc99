"""A client that joins, changes or leaves: the laws of section 5.3."""

import pathlib

import binaries
import numpy as np
import pytest
import toys

from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from bfl_tf.online import updates as online
from bfl_tf.runs import checkpoints

pytestmark = pytest.mark.process

SETTINGS = {
  'client_parts': ('swag',),
  'pooling': 'product',
  'swag.rank': 2,
  'swag.period': 1,
  'batch_size': 150,
  'local_epochs': 4,
  'num_rounds': 1,
  'refine': ('keep',),
}


def pieces(**changes):
  return toys.experiment(**SETTINGS | changes)


def played(experiment):
  state, _ = toys.play(experiment, 1)
  return state


def without(experiment, client):
  """One round in which a client was never there."""

  def engine(experiment, state, clients):
    others = [k for k in clients if k != client]
    return online.engine_lib.local(experiment, state, others)

  state, _ = toys.play(experiment, 1, engine=engine)
  return state


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {'pooling': 'lp', 'weighting': 'max_discrepancy'},
    {'model': 'toys:normalized', 'num_server_examples': 30},
    {
      'model': 'toys:normalized',
      'num_server_examples': 30,
      'batch_norm': 'recalibrate',
    },
  ],
)
def test_added_and_removed_it_was_never_there_and_order_is_nothing(changes):
  experiment = pieces(**changes)
  whole, alone = played(experiment), without(experiment, 2)
  removed = online.apply(experiment, whole, online.Change('remove', 2))
  assert toys.same(removed.state.model, alone.model)
  assert removed.info['bytes_up'] == removed.info['bytes_down'] == 0
  added = online.apply(experiment, alone, online.Change('add', 2))
  assert sorted(online.members(added.state)) == [0, 1, 2, 3, 4, 5]
  sent = online.members(added.state)[2]
  assert added.info['bytes_up'] == sent.num_bytes
  # Equal updates, all at once.
  assert not toys.same(sent.model, online.members(whole)[2].model)
  slot = added.state.slots['keep']
  again = online.Change('remove', 5)
  there_and_back = online.apply(
    experiment, added.state, online.Change('remove', 2)
  )
  assert toys.same(there_and_back.state.model, alone.model)
  first = online.apply(experiment, added.state, again)
  other = online.apply(experiment, alone, again)
  other = other.state._replace(
    slots={'keep': {**other.state.slots['keep'], 'changes': np.int32(0)}}
  )
  second = online.apply(experiment, other, online.Change('add', 2))
  assert toys.same(first.state.model, second.state.model)
  assert int(slot['changes']) == 1


def test_replaced_it_draws_anew_and_the_others_stay():
  experiment = pieces()
  before = played(experiment)
  after = online.apply(experiment, before, online.Change('replace', 1))
  ours, theirs = online.members(before), online.members(after.state)
  assert not toys.same(ours[1].model, theirs[1].model)
  assert all(toys.same(ours[k].model, theirs[k].model) for k in (0, 2, 3, 4, 5))


@pytest.mark.parametrize('part', ['scaffold', 'toys:Counter'])
def test_what_clients_remember_goes_with_them(part):
  experiment = pieces(client_parts=(part, 'swag'))
  whole, alone = played(experiment), without(experiment, 2)
  removed = online.apply(experiment, whole, online.Change('remove', 2)).state
  assert toys.same(removed.model, alone.model)
  assert toys.same(removed.memories, alone.memories)
  added = online.apply(experiment, alone, online.Change('add', 2)).state
  assert sorted(added.memories) == [0, 1, 2, 3, 4, 5]
  for client, memory in alone.memories.items():
    assert toys.same(added.memories[client], memory)


def test_a_member_that_is_refused_is_not_dropped():
  experiment = pieces()
  state = played(experiment)
  state.slots['keep']['updates']['4']['model']['loc'][0] = np.nan
  with pytest.raises(ValueError, match='4: its loc is not finite'):
    online.apply(experiment, state, online.Change('remove', 1))


SCHEDULES = [
  {'learning_rate_schedule': 'steps', 'steps.first_factor': 0.5},
  {'early_local_epochs': 7, 'early_rounds': 1},
  {'min_local_epochs': 2, 'local_epochs': 9},
]


@pytest.mark.parametrize('changes', SCHEDULES)
def test_a_newcomer_trains_by_the_founders_schedule(changes):
  """By the rates and epochs of the one round, by draws of its own."""
  experiment = pieces(**changes)
  before = played(experiment)
  after = online.apply(experiment, before, online.Change('replace', 1)).state
  ours, theirs = (online.members(state)[1] for state in (before, after))
  assert not toys.same(ours.model, theirs.model)
  assert ours.trace.steps == theirs.trace.steps
  assert ours.trace.sum_rates == theirs.trace.sum_rates


def test_it_goes_on_from_a_checkpoint(tmp_path):
  experiment = pieces()
  state = played(experiment)
  checkpoints.save(state, tmp_path)
  change = online.Change('remove', 0)
  expected = online.apply(experiment, state, change)
  got = online.apply(experiment, checkpoints.restore(tmp_path), change)
  assert toys.same(expected.state.model, got.state.model)


@pytest.mark.parametrize(
  'kind, client, message',
  [
    ('remove', 6, '--remove=6: the run has clients 0 to 5'),
    ('replace', 2, '--replace=2: that client is not there'),
    ('remove', 2, '--remove=2: that client is not there'),
    ('add', 1, '--add=1: that client is there already'),
  ],
)
def test_what_cannot_be_done_is_refused(kind, client, message):
  experiment = pieces()
  state = without(experiment, 2)
  with pytest.raises(ValueError, match=message):
    online.apply(experiment, state, online.Change(kind, client))


def test_a_run_that_kept_nothing_or_not_all_or_played_on_is_refused():
  state, _ = toys.play(pieces(refine=()), 1)
  with pytest.raises(ValueError, match='play it with --refine=keep'):
    online.members(state)
  with pytest.raises(ValueError, match='--refine=keep is for one-shot runs'):
    pieces(num_rounds=2)
  with pytest.raises(ValueError, match='leave --clients_per_round=3 out'):
    pieces(clients_per_round=3)


def test_the_binary_makes_changes_of_both_forms(tmp_path):
  config = config_lib.Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_clients=3, num_rounds=1, local_epochs=4, batch_size=25,
    client_parts=('swag',), pooling='product', refine=('keep',),
    settings={'swag.rank': 2, 'swag.period': 1},
  )  # fmt: skip
  runs_lib.run(config, tmp_path / 'run', show_progress=False)
  run = f'--run={tmp_path}/run'
  removed, added, twice, unknown, nothing = binaries.drive(
    'experiments.online',
    [
      [run, '--remove=1', '--form=message'],
      [run, '--add=1', '--form=message'],
      [run, '--add=1'],
      [run, '--remove=7'],
      [run],
    ],
    pathlib.Path(__file__).parents[1],
  )
  assert removed[0] == added[0] == 0, (removed, added)
  assert 'clients  0, 2' in removed[1] and 'bytes up' in removed[1]
  assert 'clients  0, 1, 2' in added[1] and 'accuracy' in added[1]
  for (code, _, error), message in (
    (twice, '--add=1: that client is there already'),
    (unknown, '--remove=7: the run has clients 0 to 2'),
    (nothing, 'give --run and one of --add, --replace, --remove'),
  ):
    assert code == 2 and message in error and error.count('\n') == 1
