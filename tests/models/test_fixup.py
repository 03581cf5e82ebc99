"""Tests of Fixup ResNets: initialisation and training."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import models, training, weights
from bfl_tf.models import layers

_RNG = np.random.default_rng(0)


def build(depth=8, **more):
  shapes = {'input_shape': (8, 8, 3), 'num_classes': 10}
  return models.build(
    f'fixup_resnet{depth}', variant='deterministic', **shapes, **more
  )


def kernels(model):
  return [v.numpy() for v in model.trainable_variables if len(v.shape) == 4]


def test_initial_scales_of_kernels(depth=14):
  model = build(depth)
  stem, *branches = kernels(model)
  num_branches = (depth - 2) // 2

  def he(kernel):
    return np.sqrt(2 / np.prod(kernel.shape[:3]))

  # 432 weights, and 2304 or more: bounds are five standard errors.
  assert stem.std() / he(stem) == pytest.approx(1, abs=0.17)
  for first, last in zip(branches[::2], branches[1::2], strict=True):
    expected = he(first) * num_branches**-0.5
    assert first.std() / expected == pytest.approx(1, abs=0.074)
    assert not last.any()
  released, *others = kernels(build(depth, released_start=True))
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


@pytest.mark.parametrize('depth', [8, pytest.param(32, marks=pytest.mark.slow)])
def test_fixup_resnets_train_without_normalization(depth):
  """The data are 40 noisy pictures of ten prototypes."""
  y = np.arange(40) % 10
  x = _RNG.normal(size=[10, 8, 8, 3])[y] + _RNG.normal(size=[40, 8, 8, 3])
  worker = toys.worker(
    functools.partial(build, depth),
    optimizer=training.SGD(0.9),
    batch_size=40,
    data=training.Data(x.astype(np.float32), y, np.zeros(3), np.ones(3)),
  )
  begin = toys.start(worker)
  trained = worker.train(
    toys.task(begin, range(40), 60, 0.02, batch_size=40)
  ).model
  again = worker.train(toys.task(trained, range(40), 1, 0.02, batch_size=40))
  assert again.trace.loss < 0.5 * np.log(10)
  moved = weights.unflatten(trained.point - begin.point, worker.layout.point)
  assert all(np.any(change) for change in moved)


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
