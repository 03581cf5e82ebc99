"""MobileNetV2: its weights by formula, Keras' own network, a few steps."""

import functools

import numpy as np
import pytest
import tf_keras

from bfl_tf import models, weights

# Of each block: channels in, expansion, channels out, strides at 224x224.
BLOCKS = [
  (before, expansion, after, strides)
  for first, expansion, after, repeats, stride in (
    (32, 1, 16, 1, 1),
    (16, 6, 24, 2, 2),
    (24, 6, 32, 3, 2),
    (32, 6, 64, 4, 2),
    (64, 6, 96, 3, 1),
    (96, 6, 160, 3, 2),
    (160, 6, 320, 1, 1),
  )
  for before, strides in [(first, stride)] + [(after, 1)] * (repeats - 1)
]
DEPTHWISE = sum(before * expansion for before, expansion, *_ in BLOCKS)


@functools.cache
def build(variant='deterministic', size=32, **settings):
  return models.build(
    'mobilenetv2',
    variant=variant,
    input_shape=(size, size, 3),
    num_classes=10,
    **settings,
  )


def counts():
  """Kernels that vary, those of depthwise convolutions, channels normalised."""
  kernels, channels = 27 * 32 + 320 * 1280 + 1281 * 10, 32 + 1280
  for before, expansion, after, _ in BLOCKS:
    wide = before * expansion
    kernels += before * wide * (expansion > 1) + wide * after
    channels += wide * (expansion > 1) + wide + after
  return kernels, 9 * DEPTHWISE, channels


def test_the_formula_is_the_docstrings():
  kernels, depthwise, channels = counts()
  assert depthwise == 64_224
  assert kernels + depthwise + 2 * channels == 2_236_682


@pytest.mark.parametrize(
  'variant, normalization',
  [
    ('mc_dropout', 'batch'),
    ('flipout', 'none'),
  ],
)
def test_counts(variant, normalization):
  model = build(variant, normalization=normalization)
  layout = weights.Layout.of(model)
  kernels, depthwise, channels = counts()
  bare = normalization == 'none'
  affine = channels if bare else 2 * channels
  assert layout.num_trainable() == kernels + depthwise + affine
  # Without normalization biases vary too, but those of depthwise convolutions.
  varying = kernels + bare * (channels - DEPTHWISE)
  assert layout.size('loc') == (varying if variant == 'flipout' else 0)
  assert layout.size('buffers') == 2 * channels * (normalization == 'batch')
  drops = [type(layer).__name__ for layer in model.layers].count('MCDropout')
  # After every convolution: three in a block, two where nothing is expanded.
  assert drops == (1 + 2 + 16 * 3 + 1) * (variant == 'mc_dropout')


@pytest.mark.parametrize(
  'size, first, last',
  [(8, 8, 1), (63, 63, 8), (64, 32, 4)],
)
def test_strides_leave_small_images_a_map(size, first, last):
  model = build(size=size)
  shapes = [layer.output_shape[1] for layer in model.layers[1:-2]]
  assert (shapes[0], shapes[-1]) == (first, last)


def test_at_128_pixels_it_is_keras_own():
  ours = build(size=128)
  theirs = tf_keras.applications.MobileNetV2(
    (128, 128, 3), weights=None, classes=10, classifier_activation=None
  )
  rng = np.random.default_rng(0)
  # No vector at its start, where half of them are zeros.
  values = [
    rng.uniform(0.5, 1.5, value.shape) if value.ndim == 1 else value
    for value in ours.get_weights()
  ]
  theirs.set_weights(values)
  ours.set_weights(values)
  x = rng.normal(size=[2, 128, 128, 3])
  np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
