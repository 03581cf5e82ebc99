"""Tests of MobileNetV2: number of weights, comparison with Keras, strides."""

import functools

import numpy as np
import pytest
import tf_keras

from bfl_tf import models, weights


@functools.cache
def build(variant='deterministic', size=32, **settings):
  return models.build(
    'mobilenetv2',
    variant=variant,
    input_shape=(size, size, 3),
    num_classes=10,
    **settings,
  )


@pytest.mark.slow
def test_numbers_of_weights_and_dropout_layers():
  assert weights.Layout.of(build()).num_trainable() == 2_236_682
  # Depthwise convolutions have nine weights and a bias per channel.
  layout = weights.Layout.of(build('flipout', normalization='none'))
  assert layout.size('point') == 10 * 64_224 // 9 and not layout.size('buffers')
  drops = [type(x).__name__ for x in build('mc_dropout').layers]
  # One per convolution: three in a block, two in a block without expansion.
  assert drops.count('MCDropout') == 1 + 2 + 16 * 3 + 1


@pytest.mark.parametrize(
  'size, first, last',
  [(63, 63, 8), (64, 32, 4)],
)
def test_strides_keep_feature_maps_of_small_images(size, first, last):
  model = build(size=size)
  shapes = [layer.output_shape[1] for layer in model.layers[1:-2]]
  assert (shapes[0], shapes[-1]) == (first, last)


def test_at_128_pixels_the_network_equals_that_of_keras():
  ours = build(size=128)
  theirs = tf_keras.applications.MobileNetV2(
    (128, 128, 3), weights=None, classes=10, classifier_activation=None
  )
  rng = np.random.default_rng(0)
  # Random values, because half of the vectors are initially zero.
  values = [
    rng.uniform(0.5, 1.5, value.shape) if value.ndim == 1 else value
    for value in ours.get_weights()
  ]
  theirs.set_weights(values)
  ours.set_weights(values)
  x = rng.normal(size=[2, 128, 128, 3])
  np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
