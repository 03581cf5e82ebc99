"""Tests of posteriors with a low-rank factor in rules and divergences."""

import numpy as np
import pytest
import toys

from bfl_tf import statistics, weights
from bfl_tf.server import pooling
from bfl_tf.server.pooling import rules, weightings

every_rule = pytest.mark.parametrize('name', sorted(rules.ELEMENTWISE))
NONE = np.zeros([0], np.float32)
WEIGHTS = [3.0, 1.0, 7.0]


def clients(rank, num_clients=3, num_params=9_000):
  """Returns clients with several chunks; the first has another rank."""
  rng = np.random.default_rng(rank)
  updates = []
  for k in range(num_clients):
    loc, point = rng.normal(size=[2, num_params])
    scale = rng.uniform(0.1, 1, num_params)
    factor = rng.normal(size=[rank + (k == 0), num_params])
    arrays = (np.float32(v) for v in (loc, scale, point, NONE, factor))
    model = weights.Weights(*arrays)
    updates.append(statistics.ClientUpdate(k, 10 + k, model))
  return updates


def marginal(update):
  model = update.model
  scale = np.sqrt(model.variance()).astype(np.float32)
  return update._replace(
    model=model._replace(scale=scale, factor=model.factor[:0])
  )


def reduce(rule, updates, reference):
  found = toys.pooled(rule, zip(updates, WEIGHTS), reference)
  return found.model, found.report


@every_rule
def test_elementwise_rules_pool_the_marginals(name, rank=2):
  rule, updates = pooling.rule_of(name), clients(rank)
  reference = marginal(clients(5, 1)[0]).model._replace(
    scale=np.full(9_000, 9, np.float32)
  )
  model, info = reduce(rule, updates, reference)
  expected, plain = reduce(rule, [*map(marginal, updates)], reference)
  assert model.factor.shape == (0, 9_000)
  assert np.array_equal(model.point, expected.point)
  # The marginals have one more rounding to float32.
  np.testing.assert_allclose(model.loc, expected.loc, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(model.scale, expected.scale, rtol=1e-6)
  assert 'factor_fraction' not in plain
  share = info.pop('factor_fraction')
  assert info == plain
  by = WEIGHTS if rule.takes_weights else [10, 11, 12]
  shares = [
    np.sum(np.square(u.model.factor, dtype=float)) / u.model.variance().sum()
    for u in updates
  ]
  assert share == pytest.approx(np.average(shares, weights=by), rel=1e-12)


def test_divergences_are_of_the_marginals():
  sent = clients(2, 2, 30)
  got, expected = (
    weightings.divergence(*(update.model for update in of))
    for of in (sent, map(marginal, sent))
  )
  assert got == pytest.approx(expected, rel=1e-5)
