"""Tests of BayesianStrategy."""

from flwr import app
import grids
import numpy as np
import pytest

from bfl_tf import models, weights
from bfl_tf.flower import BayesianStrategy
from bfl_tf.server import pooling

SIZES = (10, 30)


def build():
  return models.build(
    'logistic', variant='flipout', input_shape=(4,), num_classes=3
  )


def trained(seed):
  """Returns weights of a client's reply."""
  rng = np.random.default_rng(seed)
  return [
    (w + rng.normal(size=w.shape)).astype(np.float32)
    for w in build().get_weights()
  ]


def reply(node, arrays, size):
  message = app.Message(app.RecordDict(), node, 'train')
  message.metadata.__dict__['_message_id'] = 'message'
  metrics = app.MetricRecord({'num-examples': size, 'loss': float(node)})
  content = {'arrays': app.ArrayRecord(arrays), 'metrics': metrics}
  back = app.Message(app.RecordDict(content), reply_to=message)
  back.metadata.__dict__['_src_node_id'] = node
  return back


def pooled(replies, rule='conflation', **settings):
  """Returns the model's weights after a round, and its metrics."""
  model = build()
  # The random updates are far from the broadcast.
  settings = {'max_update_norm': 0.0} | settings
  strategy = BayesianStrategy(model, rule=rule, **settings)
  start, grid = app.ArrayRecord(model.get_weights()), grids.Grid({0: {}, 1: {}})
  list(strategy.configure_train(1, start, app.ConfigRecord(), grid))
  arrays, metrics = strategy.aggregate_train(1, replies)
  return arrays and arrays.to_numpy_ndarrays(), metrics


def posterior(arrays):
  model = build()
  model.set_weights(arrays)
  read = weights.read(weights.Variables.of(model))
  return weights.distribution(weights.Weights(*map(np.asarray, read)))


@pytest.mark.parametrize('rule', ['nwa', 'ws', 'product', 'multi_krum'])
def test_the_strategy_gives_the_result_of_the_pooling_rule(rule):
  sent = [trained(seed) for seed in range(2)]
  replies = [reply(n, a, s) for n, (a, s) in enumerate(zip(sent, SIZES))]
  arrays, metrics = pooled(replies, rule)
  weighted = SIZES if rule in ('nwa', 'ws') else None
  expected = pooling.pool(rule, map(posterior, sent), weighted)
  found = posterior(arrays)
  np.testing.assert_allclose(found.mean(), expected.mean(), rtol=1e-6)
  np.testing.assert_allclose(found.stddev(), expected.stddev(), rtol=1e-5)
  assert metrics['rejected'] == 0
  # The loss is the mean weighted by examples, as in FedAvg.
  assert metrics['loss'] == pytest.approx(30 / 40)


@pytest.mark.parametrize(
  'change, metrics',
  [
    (lambda arrays: [np.full_like(a, np.nan) for a in arrays], {}),
    (lambda arrays: [a[1:] for a in arrays], {}),
    (lambda arrays: arrays[1:], {}),
    (list, {'loss': float('nan')}),
    (list, {'loss': [1.0, 2.0]}),
    (list, {'other': 1.0}),
  ],
)
def test_an_invalid_reply_is_rejected_and_changes_nothing(change, metrics):
  good = [reply(node, trained(node), 10) for node in (0, 2)]
  bad = reply(1, change(trained(1)), 30)
  for name, value in metrics.items():
    bad.content['metrics'][name] = value
  arrays, found = pooled([bad, *good])
  alone, expected = pooled(good)
  assert found['rejected'] == 1
  assert found['loss'] == expected['loss'] == 1.0
  for one, other in zip(arrays, alone):
    np.testing.assert_array_equal(one, other)


def test_a_round_with_only_errors_returns_no_model():
  message = app.Message(app.RecordDict(), 0, 'train')
  message.metadata.__dict__['_message_id'] = 'message'
  error = app.Message(app.Error(0, 'no power'), reply_to=message)
  assert pooled([error]) == (None, None)


def test_an_extremely_large_update_is_scaled_down():
  far = [w + 1e15 for w in trained(0)]
  replies = [reply(0, trained(1), 10), reply(1, far, 10)]
  arrays, metrics = pooled(replies, max_update_norm=6.0)
  assert metrics['rejected'] == 0
  assert max(np.abs(array).max() for array in arrays) < 100
