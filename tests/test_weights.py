"""Tests of the conversion between models, flat vectors and their Gaussian."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras
import toys

from bfl_tf import models, weights


def mlp(variant):
  return models.build(
    'mlp', variant=variant, input_shape=(3,), num_classes=2, hidden_units=(5,)
  )


def resnet():
  return models.build(
    'resnet8', variant='flipout', input_shape=(8, 8, 1), num_classes=3
  )


@pytest.mark.parametrize('build', [lambda: mlp('deterministic'), resnet])
def test_every_variable_is_in_one_group_in_the_models_order(build):
  model = build()
  loc, rho, point, buffers = variables = weights.Variables.of(model)
  renamed = [v.name.replace('_loc:', '_untransformed_scale:') for v in loc]
  assert [v.name for v in rho] == renamed
  places = {id(v): i for i, v in enumerate(model.variables)}
  order = [[places[id(v)] for v in group] for group in variables]
  assert all(indices == sorted(indices) for indices in order)
  assert sorted(itertools.chain(*order)) == sorted(places.values())
  assert list(map(id, variables.trainable)) == [*map(id, loc + rho + point)]
  assert list(map(id, variables.mean)) == [*map(id, loc + point)]
  assert not any(v.trainable for v in buffers)
  variances = weights.flatten(buffers).numpy() == 1  # Initial variances are 1.
  assert weights.Layout.of(model).is_variance().tolist() == [*variances]


def test_mean_and_replace_mean():
  model = weights.Weights(*map(np.float32, ([1, 2], [3, 4], [5], [6, 7])))
  assert model.mean.tolist() == [1, 2, 5]
  assert model.num_bytes == 4 * 7
  got = model.replace_mean(np.array([1 / 3, -1, 8]))
  expected = model._replace(loc=np.float32([1 / 3, -1]), point=np.float32([8]))
  assert toys.same(got, expected)
  assert model.mean.tolist() == [1, 2, 5]


def test_a_tfp_posterior_without_a_scale_is_a_point_estimate():
  layer = tf_keras.layers.Layer()
  layer.add_weight(name='bias_posterior_loc', shape=[2])
  layout = weights.Layout.of(layer)
  assert layout.size('point') == 2 and layout.size('loc') == 0


def test_inverse_softplus_of_tiny_and_large_scales():
  scale = np.geomspace(1e-6, 100, 200, dtype=np.float32)
  rho = weights.inverse_softplus(tf.constant(scale))
  wide = scale.astype(np.float64)
  expected = wide + np.log(-np.expm1(-wide))
  np.testing.assert_allclose(rho, expected, rtol=1e-6, atol=2e-7)
  # One float32 step of rho near -14 is a millionth of the scale.
  np.testing.assert_allclose(tf.nn.softplus(rho), scale, rtol=2e-6)


RNG = np.random.default_rng(0)
LOC, SCALE, POINT, BUFFERS = (
  RNG.uniform(1, 2, n).astype(np.float32) for n in (4, 4, 2, 3)
)
FACTOR = RNG.normal(size=[2, 4]).astype(np.float32)
WHOLE = weights.Weights(LOC, SCALE, POINT, BUFFERS, FACTOR)


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


def test_variational_layers_store_the_marginal_scales():
  variables = weights.Variables.of(mlp('flipout'))
  begin = weights.Weights(*(t.numpy() for t in weights.read(variables)))
  factor = RNG.normal(size=[2, begin.loc.size]).astype(np.float32)
  begin = begin._replace(factor=factor)
  weights.write(variables, begin)
  got = weights.read(variables, begin)
  expected = np.sqrt(begin.scale**2 + (factor**2).sum(0))
  np.testing.assert_allclose(got.scale, expected, rtol=1e-5)
  assert got.factor.shape == (0, begin.loc.size)
