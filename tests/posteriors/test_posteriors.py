"""Tests of FedBE's distributions."""

import types

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import parts, statistics, weights
from bfl_tf.server import posteriors, teacher_posteriors
from experiments.papers.fedbe import released

RNG = np.random.default_rng(0)


def model(point, buffers=()):
  return toys.model((), (), point, buffers)


def updates(points, sizes):
  return [
    statistics.ClientUpdate(k, size, model(point))
    for k, (point, size) in enumerate(zip(points, sizes, strict=True))
  ]


def fitted(fit, clients, reference):
  weighed = [(update, float(update.num_examples)) for update in clients]
  sums = toys.sums(fit, weighed, reference)
  return fit.distribution(None, sums, reference)[0]


def test_the_fitted_gaussian_matches_equation_5():
  found = fitted(
    teacher_posteriors.Gaussian(),
    [
      statistics.ClientUpdate(0, 1, model([0.0, 1.0], [0.0])),
      statistics.ClientUpdate(1, 3, model([4.0, 1.0], [4.0])),
    ],
    model([1.0, 5.0], [0.0]),
  )
  # mu = (0 + 3 * 4) / 4 = 3; variance = (9 + 3 * 1) / 4 = 3; also of buffers.
  np.testing.assert_allclose(found.mean(), [3, 1, 3], rtol=1e-6)
  expected = [3**0.5, 0, 3**0.5]
  np.testing.assert_allclose(found.stddev(), expected, rtol=1e-6, atol=1e-7)


def test_a_spread_of_1e_5_is_measured_in_float32():
  """E[w^2] - E[w]^2 in float32 would be 0 here, or negative."""
  points = 1.0 + 1e-5 * RNG.standard_normal([10, 50])
  points = points.astype(np.float32)
  found = fitted(
    teacher_posteriors.Gaussian(), updates(points, [1] * 10), model(np.ones(50))
  )
  expected = points.astype(np.float64).std(0)
  np.testing.assert_allclose(found.stddev(), expected, rtol=1e-4)


def test_the_released_fit_matches_hand_computed_values():
  """The two tensors have updates of length 2 and 4 along axes, and [0, +-1]."""
  reference = model([1.0, 1.0, 0.0, 0.0, 7.0])
  points = [[3.0, 1.0, 0.0, 1.0, 7.0], [1.0, 5.0, 0.0, -1.0, 7.0]]
  shapes = [tf.TensorShape([size]) for size in (2, 2, 1)]
  run = parts.RunFacts(layout=types.SimpleNamespace(shapes=shapes))
  found = fitted(
    released.ReleasedPosterior(run=run), updates(points, [1, 7]), reference
  )
  # Unit updates (1, 0) and (0, 1): mean 1/2, variance 1/4, mean length 3;
  # (0, 1) and (0, -1): mean 0, variance 0 (floored) and 1, length 1.
  # The third tensor does not change: length 0.
  np.testing.assert_allclose(found.mean(), [2.5, 2.5, 0, 0, 7], atol=1e-6)
  np.testing.assert_allclose(
    found.stddev(), [0.15, 0.15, 0.1 * 1e-5**0.5, 0.1, 0], rtol=1e-5
  )


def mixture(concentration, shares=(1.0, 3.0)):
  members = [np.float32([0, 2]), np.float32([8, 2])]
  return posteriors.SimplexMixture(members, shares, concentration)


def test_the_simplex_mixture_matches_equation_7():
  # gamma = (1/2, 1/2): weights 1/4 and 3/4.
  np.testing.assert_allclose(mixture(1.0).combine([0.5, 0.5]), [6, 2])
  np.testing.assert_allclose(mixture(1.0).combine([1.0, 0.0]), [0, 2])
  drawn = mixture(1.0).sample([5, 2], seed=[0, 1])
  assert drawn.shape == [5, 2, 2]


def test_simplex_samples_have_the_moments_of_the_dirichlet():
  """Equal shares have Var = p (1 - p) / (K a + 1) d^2 around the average."""
  for alpha in (0.5, 1.0, 4.0):
    drawn = mixture(alpha, (1.0, 1.0)).sample(20000, seed=[3, 4]).numpy()[:, 0]
    variance = 0.25 / (2 * alpha + 1) * 64
    assert drawn.mean() == pytest.approx(4.0, abs=5 * (variance / 2e4) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=0.05)


def test_samples_of_a_models_posterior_have_its_moments():
  """Random weights are mean + scale z1 + factor^T z2; others are constant."""
  loc, scale = RNG.normal(size=3), np.array([0.5, 1e-3, 2.0])
  factor = RNG.normal(size=[2, 3])
  whole = toys.model(loc, scale, [7.0], [8.0, 9.0], factor)
  drawn = posteriors.of_model(whole).sample(40_000, seed=[5, 6]).numpy()
  assert np.array_equal(drawn[:, 3:], [[7, 8, 9]] * 40_000)
  drawn = drawn[:, :3].astype(np.float64)
  covariance = np.diag(scale**2) + factor.T @ factor
  variance = covariance.diagonal()
  error = np.sqrt(variance / len(drawn))
  assert np.all(np.abs(drawn.mean(0) - loc) < 5 * error)
  # This is the standard error of an entry of the sample covariance.
  error = np.sqrt((np.outer(variance, variance) + covariance**2) / len(drawn))
  assert np.all(np.abs(np.cov(drawn.T) - covariance) < 5 * error)


def test_at_rank_0_the_posterior_of_a_model_is_diagonal_bit_for_bit():
  vectors = (np.float32(RNG.uniform(size=n)) for n in (3, 3, 2, 2))
  whole = weights.Weights(*vectors)
  scale = np.concatenate([whole.scale, np.zeros(4)])
  expected = posteriors.normal(whole.values, scale).sample(9, seed=[1, 2])
  got = posteriors.of_model(whole).sample(9, seed=[1, 2])
  assert np.array_equal(got, expected)


def draws(scale=1.0, size=4):
  like = model([0.0, 0.0], [1.0, 1.0])
  distribution = posteriors.normal(
    np.zeros(4), np.array([scale, scale, scale, scale])
  )
  variances = np.array([False, True])
  return posteriors.Draws(
    distribution, like, variances, np.array([1, 2], np.int32), size, 0.1
  )


def test_repeated_iterations_give_the_same_draws():
  first, again = list(draws()), list(draws())
  assert len(first) == 4
  assert [m.point.tolist() for m in first] == [m.point.tolist() for m in again]
  assert len({m.point.tobytes() for m in first}) == 4


def test_drawn_moving_variances_are_at_least_a_tenth_of_the_average():
  found = draws(scale=10.0, size=60)
  held = np.array([m.buffers for m in found])
  assert held[:, 1].min() == np.float32(0.1)
  assert held[:, 0].min() < -1  # A moving mean has no floor.
  floored = np.mean(held[:, 1] == np.float32(0.1))
  assert found.floored_fraction() == pytest.approx(floored)
  assert 0.3 < floored < 0.7
