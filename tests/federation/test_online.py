"""A client that joins, changes or leaves: the laws of section 5.3."""

import dataclasses
import pathlib

import binaries
import numpy as np
import pytest
import toys

from bfl_tf import federation
from bfl_tf.federation import checkpoints, one_message, online

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
  again = dataclasses.replace(online.Change('remove', 5))
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


def test_a_run_that_kept_nothing_or_played_on_is_refused():
  state, _ = toys.play(pieces(refine=()), 1)
  with pytest.raises(ValueError, match='play it with --refine=keep'):
    online.members(state)
  with pytest.raises(ValueError, match='--refine=keep is for one-shot runs'):
    pieces(num_rounds=2)


def close(got, expected):
  """To 1e-6 of a weight's own standard deviation, and of the covariance."""
  scale = np.sqrt(expected.variance())
  np.testing.assert_allclose(got.loc / scale, expected.loc / scale, atol=1e-5)
  np.testing.assert_allclose(got.scale, expected.scale, rtol=1e-6)
  ours, theirs = (m.factor.astype(float) for m in (got, expected))
  np.testing.assert_allclose(
    ours.T @ ours / np.outer(scale, scale),
    theirs.T @ theirs / np.outer(scale, scale),
    atol=1e-6,
  )
  np.testing.assert_allclose(got.buffers, expected.buffers, rtol=1e-5)


@pytest.mark.parametrize('model', ['logistic', 'toys:normalized'])
def test_one_message_is_pooling_at_once(model, tmp_path):
  experiment = pieces(model=model)
  state = played(experiment)
  for kind, client in (('remove', 2), ('replace', 4), ('add', 2)):
    change = online.Change(kind, client)
    expected = online.apply(experiment, state, change)
    got = one_message.apply(experiment, state, change)
    close(got.state.model, expected.state.model)
    assert got.info['bytes_down'] == expected.info['bytes_down']
    # On from what a server would have stored.
    checkpoints.save(got.state._replace(round=1), tmp_path / kind)
    state = checkpoints.restore(tmp_path / kind)
    assert len(state.slots['natural']['rows']) <= 2 * len(online.members(state))


def test_only_the_message_of_the_one_is_read():
  experiment = pieces()
  state = one_message.apply(
    experiment, played(experiment), online.Change('remove', 1)
  ).state
  for other in state.slots['keep']['updates'].values():
    if other is not state.slots['keep']['updates']['3']:
      other['model']['loc'][:] = np.nan
  got = one_message.apply(experiment, state, online.Change('remove', 3))
  assert np.all(np.isfinite(got.state.model.mean))
  assert got.info['bytes_up'] == online.members(state)[3].num_bytes


def test_a_message_that_was_never_added_is_refused():
  experiment = pieces()
  state = one_message.apply(
    experiment, played(experiment), online.Change('remove', 1)
  ).state
  message = state.slots['keep']['updates']['3']['model']
  message['scale'] /= 1000
  before = toys.bits(state.slots['natural'].values())
  with pytest.raises(ValueError, match='leaves no positive definite'):
    one_message.apply(experiment, state, online.Change('remove', 3))
  assert toys.bits(state.slots['natural'].values()) == before


def test_samples_follow_and_other_rules_are_refused():
  settings = {
    'ensemble.groups': 'S', 'ensemble.num_samples': 3, 'predictor': 'S',
    'refine': ('ensemble', 'keep'),
  }  # fmt: skip
  experiment = pieces(**settings)
  state = played(experiment)
  change = online.Change('remove', 0)
  first = one_message.apply(experiment, state, change)
  assert len(first.predictors['S']) == 3
  settings |= {'ensemble.groups': 'C', 'predictor': 'C'}
  for wrong, message in (
    ({'pooling': 'lp'}, 'not lp: take --form=updates'),
    (settings, 'for --predictor=C: take --form=updates'),
  ):
    with pytest.raises(ValueError, match=message):
      one_message.apply(pieces(**wrong), state, change)


def test_the_binary_makes_changes_of_both_forms(tmp_path):
  config = federation.Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_clients=3, num_rounds=1, local_epochs=4, batch_size=25,
    client_parts=('swag',), pooling='product', refine=('keep',),
    settings={'swag.rank': 2, 'swag.period': 1},
  )  # fmt: skip
  federation.run(config, tmp_path / 'run', show_progress=False)
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
