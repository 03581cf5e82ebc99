"""Tests of networks in mixed precision."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models, training
from bfl_tf.models import layers

needs_bfloat16 = pytest.mark.skipif(
  not training.has_mixed_precision(), reason='needs bfloat16 in hardware'
)


@pytest.mark.parametrize('kind', ['Dense', 'Conv2D', 'DepthwiseConv2D'])
def test_gradients_of_biases_are_summed_in_float32(kind):
  sizes = {'Dense': [6], 'Conv2D': [6, 1], 'DepthwiseConv2D': [1]}[kind]
  layer = getattr(layers, kind)(*sizes, dtype='mixed_bfloat16')
  x = tf.ones([32, 28, 28, 6])
  upstream = np.random.default_rng(0).uniform(size=x.shape)
  upstream = tf.constant(upstream, tf.bfloat16)

  @tf.function
  def gradient():
    with tf.GradientTape() as tape:
      outputs = layer(x)
    return tape.gradient(outputs, layer.bias, output_gradients=upstream)

  exact = np.float64(upstream).sum((0, 1, 2))
  np.testing.assert_allclose(gradient(), exact, rtol=2**-8)
  assert layer.from_config(layer.get_config()).use_bias


def plain(input_shape, num_classes):
  """A user's network of layers of Keras."""
  layer = tf_keras.layers.Dense(num_classes)
  return tf_keras.Sequential([tf_keras.Input(input_shape), layer])


@needs_bfloat16
@pytest.mark.parametrize('name', ['logistic', f'{__name__}:plain'])
def test_factors_and_product_are_rounded_to_eight_bits(name):
  shapes = {'input_shape': (64,), 'num_classes': 3}
  model = models.build(
    name, variant='deterministic', mixed_precision=True, **shapes
  )
  generator = np.random.default_rng(0)
  kernel = generator.uniform(1, 2, [64, 3]).astype(np.float32)
  x = generator.uniform(1, 2, [5, 64]).astype(np.float32)
  model.set_weights([kernel, np.zeros(3)])
  found = model(x)
  assert found.dtype == tf.float32
  np.testing.assert_allclose(found, x @ kernel, rtol=3 * 2**-9)
  assert not np.allclose(found, x @ kernel, rtol=1e-5)


@needs_bfloat16
@pytest.mark.parametrize(
  'name, variant, settings',
  [
    ('lenet5', 'flipout', {}),
    ('resnet8', 'mc_dropout', {'normalization': 'group'}),
    ('fixup_resnet8', 'deterministic', {}),
    pytest.param('mobilenetv2', 'deterministic', {'normalization': 'group'},
                 marks=pytest.mark.slow),
  ],
)  # fmt: skip
def test_variables_gradients_and_outputs_are_float32(name, variant, settings):
  images = tf.random.stateless_normal([4, 32, 32, 3], [1, 2])

  def outputs(mixed_precision):
    model = models.build(
      name, variant=variant, input_shape=(32, 32, 3), num_classes=3,
      mixed_precision=mixed_precision, **settings,
    )  # fmt: skip
    with models.scope(tf.constant([1, 0])), tf.GradientTape() as tape:
      result = model(images, training=True)
      loss = tf.reduce_sum(tf.nn.log_softmax(result)[:, 0])
    gradients = tape.gradient(loss, model.trainable_variables)
    for value in (result, *model.variables, *gradients):
      assert value.dtype == tf.float32
    return result

  # The same noise and masks; a deep network adds up many rounding errors.
  mixed, exact = outputs(True), outputs(False)
  assert np.abs(mixed - exact).max() <= 0.05 * np.abs(exact).max()
  assert tf_keras.mixed_precision.global_policy().name == 'float32'
