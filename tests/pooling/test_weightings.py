"""Client weights by hand in one dimension; floors, fallbacks, point models."""

import math

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
from tensorflow_probability import distributions as tfd

from bfl_tf import pooling, statistics, weights
from bfl_tf.pooling import weightings

NONE = np.zeros([0], np.float32)
every_scheme = pytest.mark.parametrize('scheme', sorted(pooling.WEIGHTINGS))


def normal(loc, scale):
  return tfd.MultivariateNormalDiag(*gaussian(loc, scale)[:2])


def kl(q, p):
  """KL[N(m, s^2) || N(m', s'^2)] in closed form, for `(m, s)` pairs."""
  (m, s), (m_p, s_p) = q, p
  return math.log(s_p / s) + (s**2 + (m - m_p) ** 2) / (2 * s_p**2) - 0.5


def updates(*models):
  return [statistics.ClientUpdate(k, 1, q) for k, q in enumerate(models)]


def gaussian(loc, scale):
  loc, scale = np.atleast_1d(np.float32(loc)), np.atleast_1d(np.float32(scale))
  return weights.Weights(loc, scale, NONE, NONE)


def point(*values):
  return weights.Weights(NONE, NONE, np.float32(values), NONE)


def normalised(values):
  return np.array(values) / np.sum(values)


@every_scheme
@hypothesis.settings(max_examples=8)
@hypothesis.given(st.integers(0, 2**31), st.integers(1, 6), st.booleans())
def test_positive_and_summing_to_1(scheme, seed, num_clients, points):
  rng = np.random.default_rng(seed)
  locs = rng.normal(size=(num_clients + 1, 5)) * 10 ** rng.uniform(-5, 3)
  *posteriors, reference = (
    tfd.VectorDeterministic(np.float32(loc))
    if points
    else normal(loc, np.exp(rng.uniform(-6, 2, 5)))
    for loc in locs
  )
  sizes = rng.integers(1, 10_000, num_clients)
  got = pooling.client_weights(scheme, posteriors, sizes, reference)
  assert got.shape == (num_clients,) and got.dtype == np.float64
  assert np.all(got > 0)
  assert got.sum() == pytest.approx(1, abs=1e-12)
  assert num_clients > 1 or got.tolist() == [1.0]


def test_equal_and_size_by_hand():
  posteriors = [normal(k, 1) for k in range(3)]
  sizes = [100, 300, 600]
  got = pooling.client_weights('equal', posteriors, sizes)
  np.testing.assert_allclose(got, [1 / 3] * 3, rtol=1e-15)
  got = pooling.client_weights('size', posteriors, sizes)
  np.testing.assert_allclose(got, [0.1, 0.3, 0.6], rtol=1e-15)


@pytest.mark.parametrize(
  'clients', [[(0, 1), (2, 0.5)], [(0, 1), (1, 0.5), (-4, 2)]]
)
def test_divergences_by_hand(clients):
  """Each client's nearest, farthest and the global posterior, Eq. 20, 21."""
  posteriors = [normal(*client) for client in clients]
  sizes, reference = [1] * len(clients), (0.5, 4)
  others = [[kl(q, p) for p in clients if p != q] for q in clients]

  got = pooling.client_weights('max_discrepancy', posteriors, sizes)
  expected = normalised([1 / max(row) for row in others])
  np.testing.assert_allclose(got, expected, rtol=1e-12)

  nearest = weightings.MaxDiscrepancy('nearest')
  models = updates(*(gaussian(*client) for client in clients))
  got, guards = nearest.all(models, None)
  expected = [max(1 / d for d in row) for row in others]
  np.testing.assert_allclose(got, expected, rtol=1e-12)
  assert guards == 0

  # KL[q_g || q_k]: the global posterior comes first.
  got = pooling.client_weights(
    'distance', posteriors, sizes, normal(*reference)
  )
  expected = normalised([1 / kl(reference, p) for p in clients])
  np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_divergence_sums_over_parameters_in_float64():
  q, p = gaussian([0, 1, 2], [1, 2, 0.5]), gaussian([1, 1, 0], [2, 2, 1])
  expected = kl((0, 1), (1, 2)) + kl((1, 2), (1, 2)) + kl((2, 0.5), (0, 1))
  assert pooling.divergence(q, p) == pytest.approx(expected, rel=1e-12)
  # Neighbouring float32 means: a float32 KL would be lost beside 1.
  near = gaussian(np.nextafter(np.float32(1), np.float32(2)), 1)
  expected = 0.5 * float(near.loc[0] - 1) ** 2
  got = pooling.divergence(gaussian(1, 1), near)
  assert got == pytest.approx(expected, rel=1e-9)


def test_equal_posteriors_weigh_the_same_and_count():
  for discrepancy in ('largest', 'nearest'):
    weighting = weightings.MaxDiscrepancy(discrepancy)
    got, guards = weighting.all(updates(*[gaussian(1, 2)] * 3), None)
    assert (got, guards) == ([1.0] * 3, 1)
  models = updates(gaussian(0, 1), gaussian(0, 1), gaussian(2, 1))
  got, guards = weightings.MaxDiscrepancy('nearest').all(models, None)
  assert (got, guards) == ([1.0] * 3, 1)
  # The farthest is not at 0: nothing to fall back from.
  got, guards = weightings.MaxDiscrepancy('largest').all(models, None)
  assert (got, guards) == ([0.5] * 3, 0)


def test_distance_is_floored_and_counted():
  weighting, reference = weightings.Distance(), gaussian(1, 2)
  same, far = updates(reference, gaussian(1, 4))
  weight, guards = weighting.one(same, reference)
  assert (weight, guards) == (pytest.approx(1e12), 1)
  weight, guards = weighting.one(far, reference)
  assert guards == 0
  assert weight == pytest.approx(1 / kl((1, 2), (1, 4)), rel=1e-12)


def test_point_models_use_the_squared_distance():
  models = updates(point(0, 0), point(3, 4), point(0, 1))
  got, _ = weightings.MaxDiscrepancy().all(models, None)
  np.testing.assert_allclose(got, [1 / 25, 1 / 25, 1 / 18], rtol=1e-12)
  assert weightings.Distance().one(models[1], point(0, 1)) == (1 / 18, 0)
  posteriors = [tfd.VectorDeterministic(p) for p in ([0.0, 2.0], [1.0, 0.0])]
  reference = tfd.VectorDeterministic([0.0, 0.0])
  got = pooling.client_weights('distance', posteriors, [1, 1], reference)
  np.testing.assert_allclose(got, [0.2, 0.8], rtol=1e-12)


def test_refused():
  two = [normal(0, 1)] * 2
  for named, ask in (
    ('--weighting', lambda: pooling.client_weights('sized', two, [1, 1])),
    ('num_examples', lambda: pooling.client_weights('equal', two, [1])),
    (
      'global_posterior',
      lambda: pooling.client_weights('distance', two, [1, 1]),
    ),
    ('got 0', lambda: pooling.client_weights('equal', [], [])),
  ):
    with pytest.raises(ValueError, match=named):
      ask()
