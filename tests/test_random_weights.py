"""Tests of random weights and of the factor of their Gaussian."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import toys

from bfl_tf import models, weights

RNG = np.random.default_rng(0)
LOC, SCALE, POINT, BUFFERS = (
  RNG.uniform(1, 2, n).astype(np.float32) for n in (4, 4, 2, 3)
)
FACTOR = RNG.normal(size=[2, 4]).astype(np.float32)
WHOLE = weights.Weights(LOC, SCALE, POINT, BUFFERS, FACTOR)


@functools.cache
def build(variant='deterministic'):
  return models.build(
    'mlp', variant=variant, input_shape=(3,), num_classes=2, hidden_units=(4,)
  )


def test_weights_that_are_tensors_have_a_mean():
  tensors = weights.Weights(*map(tf.constant, WHOLE))
  assert tf.is_tensor(tensors.mean)
  assert np.array_equal(tensors.mean, WHOLE.mean)
  mean = np.arange(6, dtype=np.float32)
  got = tf.function(weights.Weights.replace_mean)(tensors, mean)
  assert isinstance(got, weights.Weights)
  assert toys.same(got, WHOLE.replace_mean(mean))


def test_marginal_variances_are_the_diagonal_of_the_covariance():
  double = SCALE.astype(np.float64), FACTOR.astype(np.float64)
  covariance = np.diag(double[0] ** 2) + double[1].T @ double[1]
  np.testing.assert_allclose(WHOLE.variance(), covariance.diagonal(), 1e-14)
  part = slice(1, 3)
  assert np.array_equal(WHOLE.variance(part), WHOLE.variance()[part])
  marginal = np.sqrt(covariance.diagonal())
  np.testing.assert_allclose(weights.marginal_scale(WHOLE), marginal, 1e-6)

  posterior = weights.distribution(WHOLE)
  assert isinstance(posterior, tfd.MultivariateNormalDiagPlusLowRankCovariance)
  np.testing.assert_allclose(posterior.covariance(), covariance, rtol=1e-5)
  assert np.array_equal(posterior.mean(), LOC)


def test_at_rank_0_the_marginal_scale_is_bit_for_bit_the_scale():
  scale = np.exp(RNG.uniform(-40, 9, 10_000)).astype(np.float32)
  model = weights.Weights(scale, scale, POINT, BUFFERS)
  assert np.array_equal(weights.marginal_scale(model), scale)
  assert np.array_equal(np.sqrt(model.variance()), scale.astype(np.float64))


def test_scope_all_has_all_trainable_variables_in_the_models_order():
  layers, of_all = (weights.Variables.of(build(), r) for r in ('layers', 'all'))
  assert not layers.loc
  assert [*map(id, of_all.loc)] == [*map(id, layers.point)]
  assert not of_all.point and not of_all.untransformed_scale
  assert [*map(id, of_all.mean)] == [*map(id, layers.mean)]
  assert [*map(id, of_all.trainable)] == [*map(id, layers.trainable)]
  layout = weights.Layout.of(build(), 'all')
  assert layout.posterior_scope == 'all'
  assert layout.size('loc') == layout.num_trainable() == 3 * 4 + 4 + 4 * 2 + 2


def test_scale_and_factor_without_variables_are_passed_through():
  variables = weights.Variables.of(build(), 'all')
  bare = weights.read(variables)
  size = bare.loc.shape[0]
  assert not np.any(bare.scale) and bare.factor.shape == (0, size)
  start = weights.Weights(
    *RNG.uniform(1, 2, [2, size]).astype('f4'),
    *[np.zeros([0], np.float32)] * 2,
    np.ones([3, size], np.float32),
  )
  weights.write(variables, start)
  assert toys.same(weights.read(variables, start), start)


def test_variational_layers_store_the_marginal_scales():
  variables = weights.Variables.of(build('flipout'))
  begin = weights.Weights(*(t.numpy() for t in weights.read(variables)))
  factor = RNG.normal(size=[2, begin.loc.size]).astype(np.float32)
  weights.write(variables, begin._replace(factor=factor))
  got = weights.read(variables, begin._replace(factor=factor))
  expected = np.sqrt(begin.scale**2 + (factor**2).sum(0))
  np.testing.assert_allclose(got.scale, expected, rtol=1e-5)
  assert got.factor.shape == (0, begin.loc.size)


def test_posterior_scope_all_is_rejected_for_variational_layers():
  with pytest.raises(ValueError, match='variational'):
    weights.Layout.of(build('flipout'), 'all')
