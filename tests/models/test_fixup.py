"""Tests of Fixup ResNets: initialisation and training."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models
from bfl_tf.models import layers

_RNG = np.random.default_rng(0)


def build(**more):
  shapes = {'input_shape': (8, 8, 3), 'num_classes': 10}
  return models.build(
    'fixup_resnet14', variant='deterministic', **shapes, **more
  )


def kernels(model):
  return [v.numpy() for v in model.trainable_variables if len(v.shape) == 4]


def test_initial_scales_of_kernels_in_six_branches():
  model = build()
  stem, *branches = kernels(model)

  def he(kernel):
    return np.sqrt(2 / np.prod(kernel.shape[:3]))

  # 432 weights, and 2304 or more: bounds are five standard errors.
  assert stem.std() / he(stem) == pytest.approx(1, abs=0.17)
  for first, last in zip(branches[::2], branches[1::2], strict=True):
    expected = he(first) * 6**-0.5
    assert first.std() / expected == pytest.approx(1, abs=0.074)
    assert not last.any()
  released, *others = kernels(build(released_start=True))
  assert released.std() == pytest.approx((3 * 27) ** -0.5, rel=0.17)  # 0.111
  for kernel, other in zip(branches, others, strict=True):
    fans = np.sqrt(kernel.shape[2] / kernel.shape[3])
    np.testing.assert_allclose(other, fans * kernel, rtol=1e-6)
  # Initial outputs of the branches and of the classifier are zero.
  x = _RNG.normal(size=[4, 8, 8, 3]).astype(np.float32)
  assert not model(x).numpy().any()
  maps = tf.nn.relu(tf.nn.conv2d(x, stem, 1, 'SAME'))[:, ::4, ::4]
  expected = np.pad(tf.reduce_mean(maps, [1, 2]).numpy(), [[0, 0], [0, 48]])
  inside = tf_keras.Model(model.input, model.layers[-1].input)(x)
  np.testing.assert_allclose(inside, expected, rtol=1e-5, atol=1e-6)
  # With other values, every weight has an effect.
  model.set_weights([_RNG.normal(size=w.shape) for w in model.get_weights()])
  with tf.GradientTape() as tape:
    total = tf.reduce_sum(model(x))
  gradients = tape.gradient(total, model.trainable_variables)
  assert all(map(np.any, gradients))


@pytest.mark.parametrize(
  'kind, slope', [(layers.ScalarBias, 1), (layers.ScalarFactor, 5)]
)
def test_scalars_have_their_own_learning_rate(kind, slope):
  """The gradient of 5 + b or 5 s is 1 or 5; the rate is 0.1 times 0.2."""
  layer = kind(rate=0.1)
  x = tf.constant([5.0])
  with tf.GradientTape() as tape:
    y = layer(x)
  assert float(y[0]) == pytest.approx(5)
  (scalar,) = layer.trainable_variables
  scalar.assign_sub(0.2 * tape.gradient(y, scalar))
  expected = 5 - 0.1 * 0.2 * slope**2
  assert float(layer(x)[0]) == pytest.approx(expected)
