"""Tests of FedPA against the authors' code and the covariance as a matrix."""

import numpy as np
import pytest
import toys

from bfl_tf.methods import fedpa

START = np.float32([0.13, -0.13, 0.64, 0.1])
SAMPLES = np.float32([
  [-0.54, 0.36, 1.3, 0.95],
  [-0.7, -1.27, -0.62, 0.04],
  [-2.33, -0.22, -1.25, -0.73],
  [-0.54, -0.32, 0.41, 1.04],
  [-0.13, 1.37, -0.67, 0.35],
])  # fmt: skip
# `compute_post_avg_delta_dp` of alshedivat/fedpa for these samples.
OF_AUTHORS = {
  0.0: [0.978, -0.114, 0.806, -0.23],
  0.1: [1.05789799, -0.20261773, 0.77949705, -0.59323522],
  1.0: [2.09042328, -0.3877759, 1.55982139, -2.91473964],
}


def delta(start, samples, shrinkage):
  """Returns delta by the inverse of Eq. 6."""
  least = 1 / (1 + (len(samples) - 1) * shrinkage)
  size = len(start)
  covariance = least * np.eye(size) + (1 - least) * np.cov(samples.T)
  return np.linalg.solve(covariance, start - samples.mean(0))


def sent_delta(start, samples, shrinkage, period=1, **settings):
  """Returns the delta of a part that visits these samples."""
  count = len(samples) // period
  part = fedpa.FedPA(count, period, shrinkage, **settings)
  _, sent, _ = toys.visited(part, start, samples)
  return start - sent.mean


@pytest.mark.parametrize('shrinkage', OF_AUTHORS)
def test_delta_is_that_of_the_authors_code(shrinkage):
  found = sent_delta(START, SAMPLES, shrinkage)
  np.testing.assert_allclose(found, OF_AUTHORS[shrinkage], atol=1e-5)
  expected = delta(START, SAMPLES, shrinkage)
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_samples_are_means_of_the_last_iterates():
  """A training of seven steps: one of burn-in, and three samples of two."""
  path = np.random.default_rng(0).normal(size=[7, 4])
  samples = path[1:].reshape(3, 2, -1).mean(1)
  found = sent_delta(START, path, 0.5, 2)
  np.testing.assert_allclose(found, delta(START, samples, 0.5), atol=1e-5)
  found = sent_delta(START, path, 0.5, 2, burn_in_rounds=1)
  np.testing.assert_allclose(found, START - path[-1], atol=1e-6)


def test_with_exact_moments_the_fixed_point_is_the_optimum_of_all_clients():
  """Two Gaussian posteriors; averaging alone ends far from the optimum."""
  rng = np.random.default_rng(0)
  factors = rng.normal(size=[2, 4, 4])
  covariances = np.eye(4) + factors @ factors.transpose(0, 2, 1)
  means = rng.normal(size=[2, 4])
  precisions = np.linalg.inv(covariances)
  optimum = np.linalg.solve(
    precisions.sum(0), np.einsum('kij,kj->i', precisions, means)
  )
  # Samples with exactly these means and covariances.
  z = rng.normal(size=[40, 4])
  z = np.linalg.qr(z - z.mean(0))[0] * np.sqrt(39)
  samples = means[:, None] + z @ np.linalg.cholesky(covariances).mT
  found = np.mean([sent_delta(optimum, each, 100.0) for each in samples], 0)
  apart = np.mean([sent_delta(optimum, each, 0.0) for each in samples], 0)
  # A Newton step from a delta to its zero.
  curvature = precisions.mean(0)
  error = np.linalg.norm(np.linalg.solve(curvature, found))
  assert error < np.linalg.norm(apart) / 5
