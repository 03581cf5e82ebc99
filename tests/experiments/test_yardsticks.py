"""Tests of HMC chains on known densities, of log posteriors and of planes."""

import binaries
import numpy as np
import pytest
from scipy import special
import tensorflow as tf
import toys

from bfl_tf import models, seeds, weights
from experiments.harness import planes
from experiments.reference_posteriors import chains, energy, toy

MEAN = np.array([1.0, -2.0, 0.5], np.float32)
COVARIANCE = np.array([[1, 0.5, 0], [0.5, 2, 0], [0, 0, 0.1]], np.float32)


def gaussian(w):
  precision = np.linalg.inv(COVARIANCE).astype(np.float32)
  return -0.5 * tf.tensordot(w - MEAN, tf.linalg.matvec(precision, w - MEAN), 1)


def test_r_hat_is_a_ratio_of_standard_deviations():
  # The half chains (0, 2) and (2, 4): W = 2, B / n = 2, n = 2.
  found = chains.Chains(np.float32([[[0], [2], [2], [4]]]), *np.ones([2, 1]))
  np.testing.assert_allclose(found.r_hat(), [np.sqrt(1 / 2 + 2 / 2)])


def test_hmc_chains_have_the_moments_of_a_gaussian():
  found = chains.sample(
    gaussian, np.stack([MEAN, MEAN + 1]), num_samples=1500, burn_in=300,
    step_size=0.2, seed=seeds.named(0, 'test'), num_leapfrog_steps=8,
  )  # fmt: skip
  assert found.samples.shape[::2] == (2, 3)
  assert np.all(np.abs(found.r_hat() - 1) < 0.05)
  sizes = found.effective_size()
  assert np.all(sizes > 200)
  pooled = found.samples.reshape(-1, 3).astype(np.float64)
  variance = np.diag(COVARIANCE)
  error = np.sqrt(variance / sizes)
  assert np.all(np.abs(pooled.mean(0) - MEAN) < 5 * error)
  # Squares mix more slowly, so half as many draws are assumed.
  error = variance * np.sqrt(4 / sizes)
  assert np.all(np.abs(pooled.var(0) - variance) < 5 * error)
  assert np.all((found.accepted > 0.5) & (found.step_size != 0.2))


def logistic():
  model = models.build(
    'logistic', variant='deterministic', input_shape=(4,), num_classes=3
  )
  x, y = toys.TRAIN.x[:40], toys.TRAIN.y[:40]
  return energy.log_posterior(model, x, y, prior_scale=0.5), x, y


def test_the_log_posterior_and_gradient_of_a_logistic_regression():
  density, x, y = logistic()
  w = np.random.default_rng(0).normal(size=15).astype(np.float32)
  logits = x.astype(np.float64) @ w[:12].reshape(4, 3) + w[12:]
  probs = special.softmax(logits, -1)
  expected = np.log(probs[np.arange(40), y]).sum() - np.square(w).sum() / 0.5
  with tf.GradientTape() as tape:
    given = tf.constant(w)
    tape.watch(given)
    value = density(given)
  assert float(value) == pytest.approx(expected, rel=1e-5)
  error = np.eye(3)[y] - probs
  slope = np.concatenate([(x.T @ error).ravel(), error.sum(0)]) - w / 0.25
  np.testing.assert_allclose(tape.gradient(value, given), slope, rtol=2e-4)


def test_the_density_in_a_subspace_is_a_slice_of_the_density():
  density, _, _ = logistic()
  drawn = np.random.default_rng(1).normal(size=(3, 15)).astype(np.float32)
  origin, directions, z = drawn[0], drawn[1:], np.float32([0.3, -0.7])
  sliced = energy.in_subspace(density, origin, directions)
  whole = density(tf.constant(origin + z @ directions))
  assert float(sliced(tf.constant(z))) == pytest.approx(float(whole), rel=1e-5)


def test_draws_in_the_subspace_have_the_projected_swag_covariance():
  rng = np.random.default_rng(0)
  factor = rng.normal(size=(3, 8)).astype(np.float32)
  factor = np.concatenate([factor, factor[:1]])  # The rank stays 3.
  scale = np.exp(rng.normal(size=8)).astype(np.float32)
  model = weights.Weights(
    np.ones(8, np.float32), scale, *np.zeros([2, 0]), factor
  )
  space = toy.Subspace.of(model)
  assert space.directions.shape == (3, 8)
  # The subspace contains the factor.
  inside = space.directions.T @ space.directions
  np.testing.assert_allclose(factor @ inside, factor, atol=1e-4)
  covariance = np.diag(scale**2) + factor.T @ factor
  projected = space.directions @ covariance @ space.directions.T
  np.testing.assert_allclose(
    space.root @ space.root.T, projected, rtol=1e-4, atol=1e-4
  )
  u = space.sample(rng, 4000)
  variance = np.diag(projected)
  assert np.all(np.abs(u.var(0) - variance) < 5 * variance * np.sqrt(2 / 4000))
  np.testing.assert_allclose(
    space.weights(u), 1 + u @ space.directions, rtol=1e-5
  )


def test_the_deviation_equals_that_computed_by_hand():
  left, right = np.array([[0.0, 1], [2, 3]]), np.array([[1.0, 1], [0, 4]])
  assert toy.deviation(left, right) == pytest.approx((0.5 + 1.5) / 2)


@pytest.mark.slow
@pytest.mark.process
def test_the_binary_writes_a_table_and_figures(tmp_path):
  flags = ['--num_draws=20', '--epochs=6', '--rank=3']
  good, bad = binaries.drive(
    'experiments.hmc',
    [
      [f'--output_dir={tmp_path}/hmc', *flags],
      [f'--output_dir={tmp_path}/bad', '--rank=9', '--epochs=2'],
    ],
  )
  assert good[0] == 0, good
  assert {p.name for p in (tmp_path / 'hmc').iterdir()} == {
    'hmc.csv', 'hmc_plane.png', 'hmc_surface.png',
  }  # fmt: skip
  assert bad[0] == 2 and 'of at least 9' in bad[2]


def test_samples_are_projected_onto_the_same_plane():
  rng = np.random.default_rng(0)
  direction = np.array([3.0, 4.0, 0.0]) / 5
  wide = np.outer(rng.normal(size=200), direction) * 10
  points = planes.principal({'a': wide, 'b': rng.normal(size=[100, 3])})
  # The first component is the wide direction, with any sign.
  along = np.corrcoef(points['a'][:, 0], wide @ direction)[0, 1]
  assert abs(along) > 0.999
  left, right = planes.plane(points).axes
  np.testing.assert_allclose(left.lines[0].get_xydata(), points['a'])
  assert left.get_xlim() == right.get_xlim()
  assert len(planes.surface(points).axes) == 2
