"""Tests of client weights: by hand, floors, fallbacks, deterministic models."""

import math

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import toys

from bfl_tf import statistics
from bfl_tf.server import pooling
from bfl_tf.server.pooling import weightings

every_scheme = pytest.mark.parametrize('scheme', sorted(pooling.WEIGHTINGS))


def kl(q, p):
  """Returns KL[N(m, s^2) || N(m', s'^2)] for pairs `(m, s)`."""
  (m, s), (m_p, s_p) = q, p
  return math.log(s_p / s) + (s**2 + (m - m_p) ** 2) / (2 * s_p**2) - 0.5


def updates(*models):
  """Returns updates of clients with 100, 200, ... examples."""
  return [
    statistics.ClientUpdate(k, 100 * (k + 1), q) for k, q in enumerate(models)
  ]


def weigh(weighting, sent, reference=None):
  """Returns unnormalized client weights."""
  return weighting.weigh_all(sent, reference)[0]


def gaussian(loc, scale):
  return toys.model(np.atleast_1d(loc), scale)


def point(*values):
  return toys.model(point=values)


@every_scheme
@hypothesis.settings(max_examples=8)
@hypothesis.given(st.integers(0, 2**31), st.integers(1, 6), st.booleans())
def test_weights_are_positive_and_finite(scheme, seed, num_clients, points):
  rng = np.random.default_rng(seed)
  locs = rng.normal(size=(num_clients + 1, 5)) * 10 ** rng.uniform(-5, 3)
  *models, reference = (
    point(*loc) if points else gaussian(loc, np.exp(rng.uniform(-6, 2, 5)))
    for loc in locs
  )
  got = weigh(pooling.WEIGHTINGS[scheme](), updates(*models), reference)
  assert len(got) == num_clients
  assert np.all(np.array(got) > 0) and np.all(np.isfinite(got))


def test_equal_and_size_weights_match_hand_computed_values():
  sent = updates(*[gaussian(0, 1)] * 3)
  assert weigh(weightings.Equal(), sent) == [1, 1, 1]
  assert weigh(weightings.Size(), sent) == [100, 200, 300]


@pytest.mark.parametrize(
  'clients', [[(0, 1), (2, 0.5)], [(0, 1), (1, 0.5), (-4, 2)]]
)
def test_weights_from_divergences_match_hand_computed_values(clients):
  """Eq. 20 and 21: nearest, farthest and global posterior of each client."""
  sent, reference = updates(*(gaussian(*c) for c in clients)), (0.5, 4)
  others = [[kl(q, p) for p in clients if p != q] for q in clients]
  for discrepancy, pick in (('largest', max), ('nearest', min)):
    weighting = weightings.MaxDiscrepancy(discrepancy)
    got, guards = weighting.weigh_all(sent, None)
    expected = [1 / pick(row) for row in others]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert guards == 0
  # KL[q_g || q_k]: the global posterior comes first.
  got = weigh(weightings.Distance(), sent, gaussian(*reference))
  expected = [1 / kl(reference, p) for p in clients]
  np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_divergence_is_summed_over_parameters_in_float64():
  q, p = gaussian([0, 1, 2], [1, 2, 0.5]), gaussian([1, 1, 0], [2, 2, 1])
  expected = kl((0, 1), (1, 2)) + kl((1, 2), (1, 2)) + kl((2, 0.5), (0, 1))
  assert weightings.divergence(q, p) == pytest.approx(expected, rel=1e-12)
  # The means are neighbouring float32 numbers: a float32 KL would be 0.
  near = gaussian(np.nextafter(np.float32(1), np.float32(2)), 1)
  expected = 0.5 * float(near.loc[0] - 1) ** 2
  got = weightings.divergence(gaussian(1, 1), near)
  assert got == pytest.approx(expected, rel=1e-9)


def test_equal_posteriors_have_equal_weights_and_are_counted():
  for discrepancy in ('largest', 'nearest'):
    weighting = weightings.MaxDiscrepancy(discrepancy)
    got, guards = weighting.weigh_all(updates(*[gaussian(1, 2)] * 3), None)
    assert (got, guards) == ([1.0] * 3, 1)
  models = updates(gaussian(0, 1), gaussian(0, 1), gaussian(2, 1))
  got, guards = weightings.MaxDiscrepancy('nearest').weigh_all(models, None)
  assert (got, guards) == ([1.0] * 3, 1)
  # The divergence of the farthest is not 0, so there is no fallback.
  got, guards = weightings.MaxDiscrepancy('largest').weigh_all(models, None)
  assert (got, guards) == ([0.5] * 3, 0)


def test_a_distance_of_0_is_floored_and_counted():
  weighting, reference = weightings.Distance(), gaussian(1, 2)
  same, far = updates(reference, gaussian(1, 4))
  weight, guards = weighting.weigh(same, reference)
  assert (weight, guards) == (pytest.approx(1e12), 1)
  weight, guards = weighting.weigh(far, reference)
  assert guards == 0
  assert weight == pytest.approx(1 / kl((1, 2), (1, 4)), rel=1e-12)


def test_deterministic_models_use_the_squared_distance():
  models = updates(point(0, 0), point(3, 4), point(0, 1))
  got, _ = weightings.MaxDiscrepancy().weigh_all(models, None)
  np.testing.assert_allclose(got, [1 / 25, 1 / 25, 1 / 18], rtol=1e-12)
  assert weightings.Distance().weigh(models[1], point(0, 1)) == (1 / 18, 0)
