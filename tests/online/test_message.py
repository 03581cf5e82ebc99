"""A client that joins, changes or leaves by its own message alone."""

import made
import numpy as np
import pytest
import toys

from bfl_tf.online import message as one_message
from bfl_tf.online import updates as online
from bfl_tf.runs import checkpoints


def close(got, expected):
  """To 1e-6 of a weight's own standard deviation, and of the covariance.

  A mean is rounded to float32 besides, and may be many deviations from 0.
  """
  scale = np.sqrt(expected.variance())
  np.testing.assert_allclose(
    got.loc / scale, expected.loc / scale, atol=1e-6, rtol=2**-23
  )
  np.testing.assert_allclose(got.scale, expected.scale, rtol=1e-6)
  ours, theirs = (m.factor.astype(float) for m in (got, expected))
  np.testing.assert_allclose(
    ours.T @ ours / np.outer(scale, scale),
    theirs.T @ theirs / np.outer(scale, scale),
    atol=1e-6,
  )
  np.testing.assert_allclose(got.buffers, expected.buffers, rtol=1e-5)


@pytest.mark.parametrize(
  'model, pooling',
  [
    ('logistic', 'product'),
    ('toys:normalized', 'product'),
    # Of marginals.
    ('logistic', 'conflation'),
  ],
)
def test_one_message_is_pooling_at_once(model, pooling, tmp_path):
  experiment = made.experiment(model=model, pooling=pooling)
  state = made.played(experiment)
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


def test_the_only_member_is_replaced():
  experiment = made.experiment()
  state = made.played(experiment)
  for client in range(1, experiment.config.num_clients):
    change = online.Change('remove', client)
    state = online.apply(experiment, state, change).state
  change = online.Change('replace', 0)
  expected = online.apply(experiment, state, change).state.model
  close(one_message.apply(experiment, state, change).state.model, expected)


def test_what_a_client_remembers_goes_with_it():
  experiment = made.experiment(client_parts=('toys:Counter', 'swag'))
  state = made.played(experiment)
  for kind in ('remove', 'add'):
    change = online.Change(kind, 2)
    expected = online.apply(experiment, state, change).state
    state = one_message.apply(experiment, state, change).state
    assert sorted(state.memories) == sorted(expected.memories)
    assert toys.same(*(
      [s.memories[client] for client in sorted(s.memories)]
      for s in (state, expected)
    ))  # fmt: skip


def test_only_the_message_of_the_one_is_read():
  experiment = made.experiment()
  state = one_message.apply(
    experiment, made.played(experiment), online.Change('remove', 1)
  ).state
  for other in state.slots['keep']['updates'].values():
    if other is not state.slots['keep']['updates']['3']:
      other['model']['loc'][:] = np.nan
  got = one_message.apply(experiment, state, online.Change('remove', 3))
  assert np.all(np.isfinite(got.state.model.mean))
  assert got.info['bytes_up'] == online.members(state)[3].num_bytes


def test_a_message_that_was_never_added_is_refused():
  experiment = made.experiment()
  state = one_message.apply(
    experiment, made.played(experiment), online.Change('remove', 1)
  ).state
  message = state.slots['keep']['updates']['3']['model']
  message['scale'] /= 1000
  before = toys.bits(state.slots['natural'].values())
  with pytest.raises(ValueError, match='no positive definite'):
    one_message.apply(experiment, state, online.Change('remove', 3))
  assert toys.bits(state.slots['natural'].values()) == before


def test_samples_follow_and_other_rules_are_refused():
  settings = {
    'ensemble.groups': 'S', 'ensemble.num_samples': 3, 'predictor': 'S',
    'refine': ('ensemble', 'keep'),
  }  # fmt: skip
  experiment = made.experiment(**settings)
  state = made.played(experiment)
  change = online.Change('remove', 0)
  first = one_message.apply(experiment, state, change)
  assert len(first.predictors['S']) == 3
  settings |= {'ensemble.groups': 'C', 'predictor': 'C'}
  for wrong, flag in (({'pooling': 'lp'}, 'lp'), (settings, '--predictor=C')):
    with pytest.raises(ValueError, match=f'--form=message.*{flag}'):
      one_message.apply(made.experiment(**wrong), state, change)


LEFT_OUT = {
  'recalibrate': {
    'num_server_examples': 30, 'model': 'toys:normalized',
    'batch_norm': 'recalibrate',
  },
  'momentum': {'server_step': ('momentum',)},
  'ensemble': {
    'refine': ('ensemble', 'keep'), 'ensemble.posterior': 'gaussian',
  },
}  # fmt: skip


@pytest.mark.parametrize('stage', LEFT_OUT)
def test_stages_that_would_be_left_out_are_refused(stage):
  with pytest.raises(ValueError, match=f'--form=message.*{stage}'):
    one_message.check(made.experiment(**LEFT_OUT[stage]))
