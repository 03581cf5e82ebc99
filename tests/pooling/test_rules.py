"""Tests of pooling rules against Eq. 10 to 17 in dense float64."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import stats
import toys
from toys import model as gaussian

from bfl_tf import parts, statistics
from bfl_tf.server import pooling
from bfl_tf.server.pooling import robust, rules

every_rule = pytest.mark.parametrize(
  'name', sorted({*pooling.RULES} - {'auto'})
)
law = settings(max_examples=20)
seeds = st.integers(0, 2**31)


def update(client_id, num_examples, *vectors):
  model = gaussian(*vectors)
  return statistics.ClientUpdate(client_id, num_examples, model)


def draw(seed, num_clients, num_params=40, decades=6):
  """Returns updates, weights, a reference; every 4th parameter is guarded."""
  rng = np.random.default_rng(seed)
  loc = rng.normal(size=(num_clients, num_params))
  scale = np.exp(rng.uniform(-6, -1, loc.shape))
  scale[:, ::4] += 10
  sizes = rng.integers(1, 999, num_clients)
  updates = [update(k, *case) for k, case in enumerate(zip(sizes, loc, scale))]
  reference = gaussian(rng.normal(size=num_params), np.ones(num_params))
  return updates, 10 ** rng.uniform(-decades, decades, num_clients), reference


def reduce(name, updates, client_weights, reference, rng=None):
  """Pools in the given order or, with `rng`, in a random tree."""
  rule = pooling.rule_of(name)
  pairs = zip(updates, client_weights, strict=True)
  waiting = [statistics.collected(rule, u, w, reference) for u, w in pairs]
  while len(waiting) > 1:
    if rng is not None:
      rng.shuffle(waiting)
    waiting[:2] = [statistics.merge(*waiting[:2])]
  sums = statistics.values(waiting[0])
  found = toys.stepped(rule, reference, reference, None, sums)
  return found.model, found.report


def moments(model):
  return model.loc.astype(np.float64), np.square(model.scale, dtype=np.float64)


def dense(name, updates, client_weights, reference):
  """Returns mean and variance by Eq. 10 to 17 as printed."""
  m, v = np.stack([moments(u.model) for u in updates], axis=1)
  m0, v0 = moments(reference)
  w = (client_weights / np.sum(client_weights))[:, np.newaxis]
  if name in ('nwa', 'ws', 'lp'):
    mean = np.sum(w * m, 0)
    within = np.sum((w**2 if name == 'ws' else w) * v, 0)
    between = np.sum(w * (m - mean) ** 2, 0) if name == 'lp' else 0.0
    return mean, within + between
  if name == 'wasserstein':
    return np.sum(w * m, 0), np.sum(w * np.sqrt(v), 0) ** 2
  if name == 'log_variance':
    return np.sum(w * m, 0), np.prod(v**w, 0)
  if name == 'median':
    return np.median(m, 0), np.median(v, 0)
  # A fifth, rounded to the nearest; SciPy rounds down.
  bad = round(0.2 * len(m))
  if name == 'trimmed_mean':
    share = bad / len(m) + 1e-9
    return stats.trim_mean(m, share), stats.trim_mean(v, share)
  if name == 'multi_krum':
    kept = krum(np.hstack([m, np.sqrt(v)]), bad)
    return m[kept].mean(0), v[kept].mean(0)
  if name in ('conflation', 'wc', 'llp', 'product'):
    w = np.ones_like(w) if name in ('conflation', 'product') else w
    precision = np.sum(w / v, 0)
    numerator = w.max() if name == 'wc' else 1.0
    return np.sum(w * m / v, 0) / precision, numerator / precision
  precision = np.sum(1 / v, 0) - (len(m) - 1) / v0
  mean = (np.sum(m / v, 0) - (len(m) - 1) * m0 / v0) / precision
  held = precision < 0.25 / v0
  return np.where(held, m0, mean), np.where(held, v0, 1 / precision)


def krum(m, bad):
  """Returns the clients of Multi-Krum, with one score per client."""
  scores = [
    sum(sorted(np.sum((m - mean) ** 2, axis=1))[: max(len(m) - bad - 1, 2)])
    for mean in m
  ]
  return np.argsort(scores, kind='stable')[: len(m) - bad]


@every_rule
def test_streamed_pooling_equals_dense_pooling(name):
  # 20 001 weights are two chunks and a rest.
  for num_clients, num_params in (
    (1, 40), (2, 1), (5, 20_001), (10, 40), (1000, 40)
  ):  # fmt: skip
    case = draw(num_clients, num_clients, num_params, decades=2)
    mean, variance = dense(name, *case)
    model, _ = reduce(name, *case)
    np.testing.assert_allclose(model.loc, mean, rtol=2e-7, atol=1e-9)
    np.testing.assert_allclose(model.scale, np.sqrt(variance), rtol=2e-7)


@every_rule
@law
@given(seeds, st.integers(5, 12))
def test_results_are_bit_for_bit_identical_for_any_order_and_tree(
  name, seed, num_clients
):
  rng = np.random.default_rng(seed)
  updates, w, reference = draw(seed, num_clients)
  # Means of even and odd clients cancel, except for small means of the first.
  # In a single float64, their low bits would depend on the order.
  reference = reference._replace(loc=np.zeros_like(reference.loc))
  for k in range(1, num_clients):
    loc, scale, *rest = updates[k].model
    if k % 2 == 0:
      w[k] = w[k - 1]
      loc, scale = -updates[k - 1].model.loc, updates[k - 1].model.scale
    updates[k] = update(k, int(rng.integers(1, 999)), loc, scale, *rest)
  crumbs = updates[0].model.loc * 1e-7
  updates[0] = update(0, 1, crumbs, updates[0].model.scale)
  expected, info = reduce(name, updates, w, reference)
  for _ in range(5):
    model, again = reduce(name, updates, w, reference, rng)
    assert [v.tobytes() for v in model] == [v.tobytes() for v in expected]
    assert again == info


def test_elementwise_rules_store_only_sums():
  updates, _, reference = draw(0, 1)
  for rule in map(pooling.rule_of, rules.ELEMENTWISE):
    share = statistics.collected(rule, updates[0], 1.0, reference)
    assert not share.tables


@every_rule
@law
@given(seeds)
def test_pooling_one_client_returns_its_model_bit_for_bit(name, seed):
  rng = np.random.default_rng(seed)
  loc, point, buffers = rng.normal(size=(3, 30))
  scale = np.exp(rng.uniform(-6, 0, 30))
  alone = update(0, int(rng.integers(1, 999)), loc, scale, point, buffers)
  reference = gaussian(rng.normal(size=30), np.full(30, 1.5))
  pooled, info = reduce(name, [alone], [rng.uniform(1e-3, 1e3)], reference)
  assert [v.tobytes() for v in pooled] == [v.tobytes() for v in alone.model]
  assert info == {'floored_fraction': 0, 'guarded_fraction': 0}


@every_rule
def test_point_estimates_and_buffers_match_hand_computed_averages(name):
  updates = [
    update(0, 100, [0], [1], [0, 4], [8]),
    update(1, 300, [0], [1], [4, 0], [0]),
  ]
  model, _ = reduce(name, updates, [3.0, 1.0], updates[0].model)
  # Rules with client weights use 3 to 1; others use sizes, 1 to 3. Robust rules
  # ignore sizes.
  if name in robust.ROBUST:
    expected = [2, 2], [4]
  elif name in ('conflation', 'dwc', 'product'):
    expected = [3, 1], [2]
  else:
    expected = [1, 3], [6]
  assert (model.point.tolist(), model.buffers.tolist()) == expected


@every_rule
def test_scales_at_the_lower_bound_are_counted(name):
  rule = pooling.rule_of(name).with_run(parts.RunFacts(min_scale=1.5))
  reference = gaussian([0] * 4, [2] * 4)
  client = update(0, 1, [1, 1, 1, 1], [1.25, 1, 2, 2])
  model, _, info, _ = toys.pooled(rule, [(client, 1.0)], reference)
  assert model.scale.tolist() == [1.5, 1.5, 2, 2]
  assert info == {'floored_fraction': 0.5, 'guarded_fraction': 0}


def test_dwc_keeps_the_prior_if_the_precision_is_too_low():
  # Precisions of two clients: 2/3 - 1, 2/2 - 1, 2/1.61 - 1 < 0.25 < 2/1.5 - 1.
  client = update(0, 1, [5] * 4, np.sqrt([3, 2, 1.61, 1.5]))
  reference = gaussian([4] * 4, [1] * 4)
  model, info = reduce('dwc', [client] * 2, [1, 1], reference)
  assert info == {'floored_fraction': 0, 'guarded_fraction': 0.75}
  # By hand: 4 + 2 (5 - 4) / 1.5 / (1 / 3).
  np.testing.assert_allclose(model.loc, [4, 4, 4, 8], rtol=1e-6)
  np.testing.assert_allclose(model.scale, [1, 1, 1, np.sqrt(3)], rtol=1e-6)
