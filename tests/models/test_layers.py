"""Tests of Flipout layers: moments, seeds and gradients."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models, seeds, weights
from bfl_tf.models import layers

NUM_SEEDS = 2000
ROWS = np.random.default_rng(0).normal(size=[2, 5]).astype(np.float32)
IMAGES = np.random.default_rng(1).normal(size=[2, 5, 5, 2]).astype(np.float32)
SETTINGS = {
  'kernel_initializer': tf_keras.initializers.HeNormal(seed=0),
  'initial_scale': 0.1,
}


def dense():
  return layers.DenseFlipout(3, **SETTINGS)


def conv():
  return layers.Conv2DFlipout(3, 3, strides=2, padding='same', **SETTINGS)


def conv2d(x, kernel):
  return tf.nn.conv2d(x, kernel, 2, 'SAME').numpy()


each = pytest.mark.parametrize(
  'make, x, linear', [(dense, ROWS, np.matmul), (conv, IMAGES, conv2d)]
)


def built(layer, x):
  """Returns a model of one layer with random weights, and its variables."""
  inputs = tf_keras.Input(x.shape[1:])
  model = tf_keras.Model(inputs, layer(inputs))
  variables, rng = weights.Variables.of(model), np.random.default_rng(2)
  for v in variables.loc:
    v.assign(rng.normal(size=v.shape))
  for v in variables.untransformed_scale:
    v.assign(rng.uniform(-2, 0, v.shape))
  return model, variables


def apply(model, x, seed):
  with models.scope(seed):
    return model(x, training=False)


def samples(model, x):
  """Returns outputs `[NUM_SEEDS, ...]`, each with its own seed."""

  @tf.function
  def draw():
    names = tf.stack([tf.range(NUM_SEEDS), tf.ones([NUM_SEEDS], tf.int32)], 1)
    return tf.map_fn(
      lambda seed: apply(model, x, seed), names, fn_output_signature=tf.float32
    )

  return draw().numpy().astype(np.float64)


def assert_mean(values, expected):
  """Checks the mean of `[NUM_SEEDS, ...]` within five standard errors."""
  error = values.mean(0) - expected
  assert np.all(np.abs(error) <= 5 * values.std(0) / NUM_SEEDS**0.5)


@each
def test_outputs_have_the_moments_and_independence_of_tfp(make, x, linear):
  model, variables = built(make(), x)
  kernel, bias = (v.numpy() for v in variables.loc)
  rhos = variables.untransformed_scale
  kernel_scale, bias_scale = (tf.nn.softplus(v).numpy() for v in rhos)
  drawn = samples(model, x)
  mean = linear(x, kernel) + bias
  assert_mean(drawn, mean)
  centred = drawn - mean
  variance = linear(x**2, kernel_scale**2) + bias_scale**2
  assert_mean(centred**2, variance)
  # Each example has its own signs, so examples share only the bias.
  shared = np.broadcast_to(bias_scale**2, mean.shape[1:])
  assert_mean(centred[:, 0] * centred[:, 1], shared)
  # Each output has its own signs.
  assert_mean(centred[..., 0] * centred[..., 1], np.zeros(mean.shape[:-1]))


@pytest.mark.parametrize('is_dense', [True, False])
def test_inputs_and_outputs_have_random_signs(is_dense):
  """Two equal examples have the same noise, except for signs."""

  def noise(filters, channels):
    settings = {**SETTINGS, 'use_bias': False}
    if is_dense:
      layer, x = (
        layers.DenseFlipout(filters, **settings),
        tf.ones([2, channels]),
      )
    else:
      layer = layers.Conv2DFlipout(filters, 1, **settings)
      x = tf.ones([2, 1, 1, channels])
    model, variables = built(layer, x)
    for loc in variables.loc:
      loc.assign(tf.zeros(loc.shape))
    return tf.reshape(apply(model, x, [1, 2]), [2, -1]).numpy()

  # With one input, only signs of outputs differ.
  one, two = noise(64, 1)
  np.testing.assert_array_equal(np.abs(one), np.abs(two))
  assert 0 < np.sum(one == two) < 64
  # With one output, signs of inputs change the absolute value.
  one, two = noise(1, 64)
  assert np.abs(one) != pytest.approx(np.abs(two), rel=1e-3)


@each
def test_outputs_depend_only_on_the_seed_and_add_no_loss(make, x, linear):
  model, _ = built(make(), x)
  first = apply(model, x, seeds.named(0, 'test', 1)).numpy()
  assert np.array_equal(first, apply(model, x, seeds.named(0, 'test', 1)))
  assert not np.any(first == apply(model, x, seeds.named(0, 'test', 2)))
  # Outside of a scope, the seed is random.
  assert not np.any(model(x).numpy() == model(x).numpy())
  assert model.losses == []


def test_grouped_and_separate_convolutions_agree(monkeypatch):
  model, variables = built(conv(), IMAGES)

  def slopes():
    with tf.GradientTape() as tape:
      value = apply(model, IMAGES, [3, 4])
      total = tf.reduce_sum(tf.square(value))
    return value, *tape.gradient(total, variables.trainable)

  grouped = slopes()
  monkeypatch.setattr(layers, '_LARGEST_KERNEL', 0)
  for one, two in zip(grouped, slopes(), strict=True):
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)
