"""Every rule against Eq. 10 to 17 in dense float64, and the laws between them."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from bfl_tf import pooling, statistics, weights
from bfl_tf.models import layers

NONE = np.zeros([0], np.float32)
every_rule = pytest.mark.parametrize('name', sorted(pooling.RULES))
law = settings(derandomize=True, deadline=None, max_examples=20)
seeds = st.integers(0, 2**31)
counts = st.integers(2, 12)


def gaussian(loc, scale, point=NONE, buffers=NONE):
  vectors = np.atleast_1d(loc, scale, point, buffers)
  return weights.Weights(*(np.asarray(v, np.float32) for v in vectors))


def draw(seed, num_clients, num_params=40, decades=6):
  """Clients, their weights, a reference; every 4th weight is dwc's to guard."""
  rng = np.random.default_rng(seed)
  shape = (num_clients, num_params)
  scale = np.exp(rng.uniform(-6, -1, shape))
  scale[:, ::4] += 10
  updates = [
    statistics.ClientUpdate(k, int(n), gaussian(rng.normal(size=num_params), s))
    for k, (n, s) in enumerate(zip(rng.integers(1, 999, num_clients), scale))
  ]
  reference = gaussian(rng.normal(size=num_params), np.ones(num_params))
  return updates, 10 ** rng.uniform(-decades, decades, num_clients), reference


def reduce(name, updates, client_weights, reference, rng=None):
  """Merges in the order given or, with `rng`, in any order and tree."""
  rule = pooling.RULES[name]()
  pairs = zip(updates, client_weights, strict=True)
  waiting = [rule.accumulate(u, w, reference) for u, w in pairs]
  while len(waiting) > 1:
    into = waiting.pop(0 if rng is None else rng.integers(len(waiting)))
    other = waiting.pop(0 if rng is None else rng.integers(len(waiting)))
    waiting.insert(0, statistics.merge(into, other))
  return rule.finalize(waiting[0], reference)


def moments(model):
  return model.loc.astype(np.float64), np.square(model.scale, dtype=np.float64)


def dense(name, updates, client_weights, reference):
  """Eq. 10 to 17 as printed, for `[num_clients, num_params]` at once."""
  m, v = np.stack([moments(u.model) for u in updates], axis=1)
  m0, v0 = moments(reference)
  w = (client_weights / np.sum(client_weights))[:, np.newaxis]
  if name in ('nwa', 'ws', 'lp'):
    mean = np.sum(w * m, 0)
    within = np.sum((w**2 if name == 'ws' else w) * v, 0)
    between = np.sum(w * (m - mean) ** 2, 0) if name == 'lp' else 0.0
    return mean, within + between
  if name in ('conflation', 'wc', 'llp'):
    w = np.ones_like(w) if name == 'conflation' else w
    precision = np.sum(w / v, 0)
    return np.sum(w * m / v, 0) / precision, (
      (w.max() if name == 'wc' else 1.0) / precision
    )
  precision = np.sum(1 / v, 0) - (len(m) - 1) / v0
  mean = (np.sum(m / v, 0) - (len(m) - 1) * m0 / v0) / precision
  held = precision < 0.25 / v0
  return np.where(held, m0, mean), np.where(held, v0, 1 / precision)


@every_rule
@pytest.mark.parametrize('num_clients', [1, 2, 10, 1000])
@pytest.mark.parametrize('num_params', [1, 40])
def test_streamed_is_dense(name, num_clients, num_params):
  case = draw(num_clients, num_clients, num_params, decades=1)
  mean, variance = dense(name, *case)
  model, _ = reduce(name, *case)
  np.testing.assert_allclose(model.loc, mean, rtol=2e-7, atol=1e-9)
  np.testing.assert_allclose(model.scale, np.sqrt(variance), rtol=2e-7)


@every_rule
def test_vectors_longer_than_a_chunk(name):
  case = draw(0, 3, 20_001)
  mean, variance = dense(name, *case)
  model, _ = reduce(name, *case)
  np.testing.assert_allclose(model.loc, mean, rtol=2e-7, atol=1e-9)
  np.testing.assert_allclose(model.scale, np.sqrt(variance), rtol=2e-7)


@every_rule
@law
@given(seeds, counts)
def test_order_and_tree_do_not_matter_bit_for_bit(name, seed, num_clients):
  case = draw(seed, num_clients)
  rng = np.random.default_rng(seed)
  expected, info = reduce(name, *case)
  for _ in range(5):
    model, again = reduce(name, *case, rng)
    assert [v.tobytes() for v in model] == [v.tobytes() for v in expected]
    assert again == info


@every_rule
@law
@given(seeds)
def test_one_client_returns_itself_bit_for_bit(name, seed):
  rng = np.random.default_rng(seed)
  loc, point, buffers = rng.normal(size=(3, 30))
  model = gaussian(loc, np.exp(rng.uniform(-6, 0, 30)), point, buffers)
  updates = [statistics.ClientUpdate(0, int(rng.integers(1, 999)), model)]
  reference = gaussian(rng.normal(size=30), np.full(30, 1.5))
  pooled, info = reduce(name, updates, [rng.uniform(1e-3, 1e3)], reference)
  assert [v.tobytes() for v in pooled] == [v.tobytes() for v in model]
  assert info == {'floored_fraction': 0, 'guarded_fraction': 0}


@law
@given(seeds, counts)
def test_equal_weights(seed, num_clients):
  updates, _, reference = draw(seed, num_clients)
  ones = np.full(num_clients, 0.3)
  pooled = {
    name: moments(reduce(name, updates, ones, reference)[0])
    for name in pooling.RULES
  }
  close = {'rtol': 1e-6}
  np.testing.assert_allclose(pooled['wc'], pooled['conflation'], **close)
  nwa, ws, lp = (pooled[name] for name in ('nwa', 'ws', 'lp'))
  np.testing.assert_allclose(ws[1], nwa[1] / num_clients, **close)
  means = np.stack([u.model.loc for u in updates]).astype(np.float64)
  np.testing.assert_allclose(lp[1], nwa[1] + means.var(0), **close)
  assert np.array_equal(nwa[0], ws[0]) and np.array_equal(nwa[0], lp[0])


@law
@given(seeds, counts)
def test_any_weights(seed, num_clients):
  updates, w, reference = draw(seed, num_clients)
  nwa, ws, wc, llp = (
    moments(reduce(name, updates, w, reference)[0])
    for name in ('nwa', 'ws', 'wc', 'llp')
  )
  # 1e-6: both sides of each were rounded to float32.
  assert np.all(ws[1] <= nwa[1] * (1 + 1e-6))
  heaviest = moments(updates[np.argmax(w)].model)
  assert np.all(wc[1] <= heaviest[1] * (1 + 1e-6))
  np.testing.assert_allclose(llp[1], wc[1] * w.sum() / w.max(), rtol=1e-6)
  assert np.array_equal(llp[0], wc[0])


@pytest.mark.parametrize('centre', [0.0, 1.0])
def test_lp_sees_a_spread_of_1e_5(centre):
  rng = np.random.default_rng(0)
  updates = [
    statistics.ClientUpdate(k, 1, gaussian(loc, np.full(50, 1e-6)))
    for k, loc in enumerate(rng.normal(1, 1e-5, (10, 50)))
  ]
  case = updates, np.arange(1.0, 11), gaussian(np.full(50, centre), np.ones(50))
  model, _ = reduce('lp', *case)
  np.testing.assert_allclose(moments(model)[1], dense('lp', *case)[1], 1e-4)


@every_rule
def test_points_and_buffers_by_hand(name):
  updates = [
    statistics.ClientUpdate(0, 100, gaussian([0], [1], [0, 4], [8])),
    statistics.ClientUpdate(1, 300, gaussian([0], [1], [4, 0], [0])),
  ]
  model, _ = reduce(name, updates, [3.0, 1.0], updates[0].model)
  # By size (1 to 3) for the rules that take no weights, else 3 to 1.
  by_size = name in ('conflation', 'dwc')
  assert model.point.tolist() == ([3, 1] if by_size else [1, 3])
  assert model.buffers.tolist() == ([2] if by_size else [6])


@every_rule
def test_the_floor_is_counted(name):
  update = statistics.ClientUpdate(0, 1, gaussian([1, 1, 1, 1], [0.5, 1, 2, 2]))
  rule = pooling.RULES[name](min_scale=1.5)
  reference = gaussian([0] * 4, [2] * 4)
  sums = rule.accumulate(update, 1.0, reference)
  model, info = rule.finalize(sums, reference)
  assert model.scale.tolist() == [1.5, 1.5, 2, 2]
  assert info == {'floored_fraction': 0.5, 'guarded_fraction': 0}


def test_dwc_keeps_the_prior_where_precision_runs_out():
  # Prior precision 1; 2/3 - 1, 2/2 - 1, 2/1.625 - 1 < 0.25 and 2/1.5 - 1 > it.
  scales = np.sqrt([3, 2, 1.625, 1.5])
  update = statistics.ClientUpdate(0, 1, gaussian([5] * 4, scales))
  reference = gaussian([4] * 4, [1] * 4)
  model, info = reduce('dwc', [update] * 2, [1, 1], reference)
  assert info['guarded_fraction'] == 0.75
  # By hand: 4 + 2 (5 - 4) / 1.5 / (1 / 3).
  np.testing.assert_allclose(model.loc, [4, 4, 4, 8], rtol=1e-6)
  np.testing.assert_allclose(model.scale, [1, 1, 1, np.sqrt(3)], rtol=1e-6)


@every_rule
def test_equal_rules_are_one_key(name):
  rule = pooling.RULES[name]
  assert rule() == rule() and hash(rule()) == hash(rule())
  assert len({rule(), rule(), rule(min_scale=1.0)}) == 2
  assert len({cls() for cls in pooling.RULES.values()}) == len(pooling.RULES)


@pytest.mark.parametrize('name', ['conflation', 'ws'])
def test_sixty_rounds_end_at_the_floor(name):
  rng = np.random.default_rng(0)
  model = gaussian(rng.normal(size=50), np.full(50, 0.05))
  for _ in range(60):
    scale = np.log1p(np.exp(layers.inverse_softplus(model.scale).numpy()))
    updates = [
      statistics.ClientUpdate(
        k, 1, gaussian(model.loc + rng.normal(0, 1e-3, 50), scale)
      )
      for k in range(10)
    ]
    model, info = reduce(name, updates, np.ones(10), model)
    assert np.all(np.isfinite(model.loc)) and np.abs(model.loc).max() < 5
  assert np.all(model.scale == np.float32(1e-6))
  assert info['floored_fraction'] == 1
