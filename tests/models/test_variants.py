"""Tests of kernel initializers and depthwise convolutions."""

import numpy as np
import pytest
import tf_keras

from bfl_tf import models, weights
from bfl_tf.models import variants

# Variance by fans, and bound in standard deviations. Keras truncates the normal
# at two standard deviations.
STARTS = {
  'he_normal': (lambda fan_in, fan_out: 2 / fan_in, 2 / 0.87962566),
  'glorot_uniform': (lambda fan_in, fan_out: 2 / (fan_in + fan_out), 3**0.5),
  'torch': (lambda fan_in, fan_out: 1 / (3 * fan_in), 3**0.5),
}


def assert_starts(kernel, start, fan_in, fan_out):
  expected, bound = STARTS[start]
  variance = expected(fan_in, fan_out)
  # The tails are at most those of a normal, and so is the standard error.
  assert kernel.var() == pytest.approx(
    variance, rel=5 * (2 / kernel.size) ** 0.5
  )
  largest = np.abs(kernel).max() / variance**0.5
  assert 0.99 * bound < largest <= bound * (1 + 1e-5)


def convolved(start, layer, channels, *arguments):
  inputs = tf_keras.Input((4, 4, channels))
  blocks = variants.Blocks(variants.Deterministic(), start, seed=1)
  outputs = getattr(blocks, layer)(*arguments, inputs)
  return tf_keras.Model(inputs, outputs)


def logistic(start, variant):
  return models.build(
    'logistic', variant=variant, input_shape=(200,), num_classes=300,
    kernel_initializer=start,
  )  # fmt: skip


@pytest.mark.parametrize('start', models.KERNEL_INITIALIZERS)
@pytest.mark.parametrize(
  'build, arguments, fan_in, fan_out',
  [
    (logistic, ['deterministic'], 200, 300),
    (logistic, ['flipout'], 200, 300),
    # The fans count the pixels of the window, and one channel of a depthwise
    # convolution.
    (convolved, ['conv', 20, 500, 3], 9 * 20, 9 * 500),
    (convolved, ['depthwise', 10_000, 3], 9, 9),
  ],
)
def test_initial_kernels_and_biases_have_the_stated_variance(
  build, arguments, fan_in, fan_out, start
):
  tensors = weights.Variables.of(build(start, *arguments)).mean
  kernel, biases = (tensor.numpy() for tensor in tensors)
  assert_starts(kernel, start, fan_in, fan_out)
  if start == 'torch':
    assert_starts(biases, start, fan_in, 1)
  else:
    assert not np.any(biases)


def test_variants_with_the_same_seed_have_the_same_initial_means():
  point, dropout, flipout = (
    weights.read(weights.Variables.of(models.build(
      'mlp', variant=variant, input_shape=(7,), num_classes=3, seed=5
    )))
    for variant in models.VARIANTS
  )  # fmt: skip
  assert np.array_equal(point.mean, dropout.mean)
  assert np.array_equal(np.sort(point.mean), np.sort(flipout.mean))
  np.testing.assert_allclose(flipout.scale, 0.05, rtol=1e-6)
