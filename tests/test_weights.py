"""Models to flat vectors and back, for every variant."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras

from bfl_tf import models, weights

# By hand. An mlp with 3, 5, 4 and 2 units:
MLP = 3 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2
# A resnet8 on one channel: convolutions without biases, then 64 x 3 + 3.
RESNET8 = 9 * (16 + 2 * 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64) + 195
# gamma and beta, and as many moving means and variances.
BATCH_NORM = 2 * (3 * 16 + 2 * 32 + 2 * 64)


@functools.cache
def build(name, variant):
  sizes = {
    'mlp': {'input_shape': (3,), 'num_classes': 2, 'hidden_units': (5, 4)},
    'resnet8': {'input_shape': (8, 8, 1), 'num_classes': 3},
  }
  return models.build(name, variant=variant, **sizes[name])


every_model = pytest.mark.parametrize(
  'model',
  [
    pytest.param((name, variant), id=f'{name}-{variant}')
    for name, variant in (('mlp', 'deterministic'), ('resnet8', 'flipout'))
  ],
)


@pytest.mark.parametrize('variant', ['deterministic', 'flipout'])
@pytest.mark.parametrize(
  'name, kernels, points, buffers',
  [('mlp', MLP, 0, 0), ('resnet8', RESNET8, BATCH_NORM, BATCH_NORM)],
)
def test_sizes_by_hand(name, variant, kernels, points, buffers):
  layout = weights.Layout.of(build(name, variant))
  variational = variant == 'flipout'
  assert layout.size('loc') == (kernels if variational else 0)
  assert layout.size('point') == points + (0 if variational else kernels)
  assert layout.size('buffers') == buffers
  assert layout.num_trainable() == kernels + points


@every_model
def test_every_variable_is_in_one_group_in_the_models_order(model):
  model = build(*model)
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


@every_model
def test_flatten_assign_round_trip(model):
  variables = weights.Variables.of(build(*model))
  rng = np.random.default_rng(0)
  for group in variables:
    before = weights.flatten(group)
    assert before.dtype == tf.float32 and before.shape.rank == 1
    vector = rng.normal(size=before.shape).astype(np.float32)
    weights.assign(group, tf.constant(vector))
    assert np.array_equal(weights.flatten(group), vector)
    parts = weights.unflatten(tf.constant(vector), [v.shape for v in group])
    for part, variable in zip(parts, group, strict=True):
      assert np.array_equal(part, variable)
    weights.assign(group, before)
    assert np.array_equal(weights.flatten(group), before)


def test_one_layout_serves_every_copy_of_a_model(variant='flipout'):
  layout = weights.Layout.of(build('mlp', variant))
  tf_keras.layers.Dense(1)(tf.zeros([1, 1]))  # Keras counts names up.
  again = models.build(
    'mlp', variant=variant, input_shape=(3,), num_classes=2, hidden_units=(5, 4)
  )
  assert weights.Layout.of(again) == layout
  assert hash(weights.Layout.of(again)) == hash(layout)


def test_flatten_and_unflatten_by_hand():
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


@pytest.mark.parametrize('variant', ['deterministic', 'flipout'])
def test_the_distribution_of_a_layout(variant):
  layout = weights.Layout.of(build('resnet8', variant))
  rng = np.random.default_rng(0)
  sizes = [layout.size(g) for g in ('loc', 'loc', 'point', 'buffers')]
  model = weights.Weights(*(rng.uniform(1, 2, n).astype('f4') for n in sizes))
  posterior = weights.distribution(model)
  if variant == 'flipout':
    assert isinstance(posterior, tfd.MultivariateNormalDiag)
    assert posterior.event_shape == RESNET8
    assert np.array_equal(posterior.mean(), model.loc)
    np.testing.assert_allclose(posterior.stddev(), model.scale, rtol=1e-6)
  else:
    assert isinstance(posterior, tfd.VectorDeterministic)
    assert posterior.event_shape == RESNET8 + BATCH_NORM
    assert np.array_equal(posterior.mean(), model.point)


def test_a_singular_posterior_of_tfps_is_a_point():
  layer = tf_keras.layers.Layer()
  layer.add_weight(name='bias_posterior_loc', shape=[2])
  layout = weights.Layout.of(layer)
  assert layout.size('point') == 2 and layout.size('loc') == 0


def test_what_is_no_pair_and_no_float32_is_refused():
  half = tf_keras.layers.Layer()
  half.add_weight(name='kernel_posterior_untransformed_scale', shape=[2])
  counts = tf_keras.layers.Normalization()
  counts.adapt(np.ones([4, 2], np.float32))
  counting = tf_keras.Sequential([counts, tf_keras.layers.Dense(1)])
  for network, named in ((half, 'kernel_po'), (counting, 'count')):
    with pytest.raises(ValueError, match=named):
      weights.Layout.of(network)


def test_softplus_round_trip_of_tiny_scales():
  scale = np.geomspace(1e-6, 10, 200, dtype=np.float32)
  again = tf.nn.softplus(weights.inverse_softplus(tf.constant(scale)))
  # A float32 near log(1e-6) is 1e-6 apart from the next.
  np.testing.assert_allclose(again, scale, rtol=2e-6)
