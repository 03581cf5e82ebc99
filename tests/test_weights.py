"""Tests of the conversion between models and flat vectors."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models, weights


@functools.cache
def build(name, variant):
  sizes = {
    'mlp': {'input_shape': (3,), 'num_classes': 2, 'hidden_units': (5, 4)},
    'resnet8': {'input_shape': (8, 8, 1), 'num_classes': 3},
  }
  return models.build(name, variant=variant, **sizes[name])


@pytest.mark.parametrize(
  'name, variant', [('mlp', 'deterministic'), ('resnet8', 'flipout')]
)
def test_every_variable_is_in_one_group_in_the_models_order(name, variant):
  model = build(name, variant)
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


def test_copies_of_a_model_have_equal_layouts(variant='flipout'):
  layout = weights.Layout.of(build('mlp', variant))
  tf_keras.layers.Dense(1)(tf.zeros([1, 1]))  # Keras increments layer names.
  again = models.build(
    'mlp', variant=variant, input_shape=(3,), num_classes=2, hidden_units=(5, 4)
  )
  assert weights.Layout.of(again) == layout
  assert hash(weights.Layout.of(again)) == hash(layout)


def test_flatten_and_unflatten_match_hand_computed_values():
  shapes = [tf.TensorShape(s) for s in ((2, 2), (), (1, 3))]
  vector = tf.range(8.0)
  parts = weights.unflatten(vector, shapes)
  assert [p.numpy().tolist() for p in parts] == [
    [[0, 1], [2, 3]],
    4,
    [[5, 6, 7]],
  ]
  assert np.array_equal(weights.flatten(parts), vector)
  assert weights.flatten([]).shape == (0,)
  assert weights.unflatten(tf.zeros([0]), []) == []


def test_mean_and_replace_mean():
  model = weights.Weights(*map(np.float32, ([1, 2], [3, 4], [5], [6, 7])))
  assert model.mean.tolist() == [1, 2, 5]
  assert model.num_bytes == 4 * 7
  got = model.replace_mean(np.array([1 / 3, -1, 8]))
  assert [v.tolist() for v in got] == [
    [np.float32(1 / 3), -1],
    [3, 4],
    [8],
    [6, 7],
    [],
  ]
  assert {v.dtype for v in got} == {np.dtype(np.float32)}
  assert model.mean.tolist() == [1, 2, 5]
  again = model.replace_mean(model.mean)
  assert all(np.array_equal(a, b) for a, b in zip(again, model, strict=True))


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
