"""Tests of distances from the true posterior."""

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import models, parts, weights
from experiments.reference_posteriors import distance

RNG = np.random.default_rng(0)
ROTATION = np.linalg.qr(RNG.normal(size=(2, 2)))[0]


def gaussian(mean, root):
  return distance.Gaussian(np.array(mean, float), np.array(root, float))


def test_distances_of_two_gaussians_equal_those_computed_by_hand():
  p = gaussian([0, 0], ROTATION @ np.diag([1, 2]))
  # Q has another square root and is 1.5 times as wide in one direction.
  q = gaussian(ROTATION @ [3, 4], ROTATION @ np.diag([1.5, 2]) @ ROTATION)
  assert distance.wasserstein(q, p) == pytest.approx(np.sqrt(25 + 0.25))
  expected = 0.5 * (1.5**2 + 9 + 4 - 1 - 2 * np.log(1.5))
  assert distance.divergence(q, p) == pytest.approx(expected)
  assert distance.wasserstein(p, p) == pytest.approx(0, abs=1e-6)


def test_distances_of_a_point_estimate_and_to_the_marginals():
  p = gaussian([0, 1], [[1, 0], [2, 2]])
  np.testing.assert_allclose(p.diagonal.root, [1, 8**0.5])
  point = gaussian([0, 4], [0, 0])
  # The squared distance to a point is 9 plus the trace.
  assert distance.wasserstein(point, p) == pytest.approx(np.sqrt(9 + 9))
  assert distance.wasserstein(point, p.diagonal) == pytest.approx(18**0.5)


def test_the_covariance_of_a_model_combines_scale_and_factor():
  whole = toys.model([1, 2], [0.5, 1], [], [], [[1, 1]])
  root = distance.Gaussian.of_model(whole).root
  np.testing.assert_allclose(root @ root.T, [[1.25, 1], [1, 2]])
  point = toys.model(point=[1, 2])
  assert not distance.Gaussian.of_model(point).root.any()


@pytest.mark.parametrize('variant', ['deterministic', 'flipout'])
def test_log_probabilities_equal_those_of_the_network(variant):
  model = models.build(
    'logistic', variant=variant, input_shape=(4,), num_classes=3
  )
  variables = weights.Variables.of(model)
  w = RNG.normal(size=15).astype(np.float32)
  weights.assign(variables.mean, tf.constant(w))
  for rho in variables.untransformed_scale:
    rho.assign(tf.fill(rho.shape, -30.0))
  x = toys.TRAIN.x[:5].astype(np.float32)
  ours = distance.log_probabilities(w[np.newaxis], x)[0]
  np.testing.assert_allclose(
    ours, tf.nn.log_softmax(model(x)), rtol=1e-4, atol=1e-4
  )


def test_predictive_distances_equal_those_computed_by_hand():
  left, right = np.array([[0.5, 0.5], [1, 0]]), np.array([[0.2, 0.8], [0, 1]])
  assert distance.total_variation(left, right) == pytest.approx(0.65)
  # Two draws and one group of two: the likelihood is (0.9^2 + 0.2^2) / 2.
  probs = np.array([[[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2])
  expected = -np.log((0.81 + 0.04) / 2) / 2
  found = distance.joint_nll(np.log(probs), np.array([0, 0]))
  assert found == pytest.approx(expected)


def test_the_true_posterior_is_close_to_its_own_draws():
  p = gaussian(RNG.normal(size=10), RNG.normal(size=(10, 10)) / 3)
  noise = RNG.normal(size=(4, 1000, 10))
  x = RNG.normal(size=(30, 4))
  draws, inputs = p.mean + noise @ p.root.T, {'test': x, 'shifted': 2 * x}
  truth = distance.Truth(draws, inputs, np.arange(30) % 2)
  near = truth.columns(p)
  # The mean KL of estimated moments is (P + P (P + 1) / 2) / (2 n).
  assert near['kl_to_truth'] < 3 * 65 / 8000
  # Each side is a mean of 500 probabilities with a deviation below 1/2.
  assert near['tv_test'] < 5 * 0.5 * (2 / 500) ** 0.5
  far = truth.columns(gaussian(p.mean, np.zeros(10)))
  assert 'kl_to_truth' not in far
  assert far['tv_test'] > near['tv_test']
  floors = truth.floors
  assert floors['r_hat_hmc'] < 1.01
  # No other diagonal Gaussian has a smaller KL[q, p].
  for factor in (0.9, 1.1):
    scale = factor / np.sqrt(np.linalg.inv(p.root @ p.root.T).diagonal())
    off = truth.columns(gaussian(p.mean, scale))
    assert floors['kl_to_truth_factorised'] < off['kl_to_truth']


def test_each_round_reports_distances_to_the_reference_posterior():
  data = toys.blobs()
  x = (data.train.x - data.mean) / data.std
  near = distance.laplace(x, data.train.y, data.num_classes)
  of_hmc = distance.truth('toys:blobs', 200).gaussian
  assert distance.divergence(of_hmc, near) < 1
  part = distance.Distance('toys:blobs', 200)
  for model in (toys.model(near.mean, 0.1), toys.model(point=near.mean)):
    first, second = (
      part.step(model, {}, None, parts.ServerContext(model, round=index)).report
      for index in range(2)
    )
    assert first['r_hat_hmc'] < 1.2
    assert 'r_hat_hmc' not in second
    assert ('kl_to_truth' in second) == bool(model.scale.size)
    assert second['w2'] > 0
