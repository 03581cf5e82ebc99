"""Fixup: residual networks without normalization, by their initial weights.

Notation: L residual branches of m = 2 convolutions each.
  - The last convolution of a branch and the classifier start at zero, other
    convolutions of a branch at L^(-1 / (2m - 2)) times their standard scale.
  - A scalar bias stands before each convolution, each activation and the
    classifier, and a scalar factor behind the last convolution of a branch.

The scalars are points in every variant, as normalization's gamma and beta are.
Deviations from the published code: the first convolution starts at the standard
scale too, and scalars learn at the rate of all weights (there at a tenth).

References:
  H. Zhang, Y. Dauphin, T. Ma. Fixup initialization: residual learning without
  normalization. ICLR 2019.
"""

import tf_keras

from bfl_tf.models import networks

# So that Keras finds them in a saved model.
_registered = tf_keras.saving.register_keras_serializable(package='bfl_tf')


@_registered
class ScalarBias(tf_keras.layers.Layer):
  """Adds one number, at first 0."""

  def build(self, input_shape):
    self.bias = self.add_weight(name='bias', shape=(), initializer='zeros')

  def call(self, inputs):
    return inputs + self.bias


@_registered
class ScalarFactor(tf_keras.layers.Layer):
  """Multiplies by one number, at first 1."""

  def build(self, input_shape):
    self.factor = self.add_weight(name='factor', shape=(), initializer='ones')

  def call(self, inputs):
    return inputs * self.factor


def fixup_resnet(blocks, x, num_classes, depth):
  """A Fixup ResNet of depth 6n + 2 for small images."""
  plan = networks.residual_blocks('fixup_resnet', depth, x)
  gain = len(plan) ** -0.5
  x = ScalarBias()(blocks.conv(16, 3, x, use_bias=False))
  x = blocks.dropout(tf_keras.layers.ReLU()(x))
  for filters, strides in plan:
    x = _block(blocks, x, filters, strides, gain)
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, ScalarBias()(x), gain=0.0)


def _block(blocks, x, filters, strides, gain):
  biased = ScalarBias()(x)
  y = blocks.conv(
    filters, 3, biased, strides=strides, use_bias=False, gain=gain
  )
  y = tf_keras.layers.ReLU()(ScalarBias()(y))
  y = ScalarBias()(blocks.dropout(y))
  y = blocks.conv(filters, 3, y, use_bias=False, gain=0.0)
  y = blocks.dropout(ScalarBias()(ScalarFactor()(y)))
  # The published code's shortcut: biased where it is not the identity.
  x = x if strides == 1 else networks.shortcut(biased, filters, strides)
  return tf_keras.layers.ReLU()(x + y)
