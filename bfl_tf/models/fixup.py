"""Fixup: residual networks without normalization, by their initial weights.

Notation: L residual branches of m = 2 convolutions each.
  - The last convolution of a branch and the classifier start at zero, other
    convolutions of a branch at L^(-1 / (2m - 2)) times their standard scale.
  - A scalar bias stands before each convolution, each activation and the
    classifier, and a scalar factor behind the last convolution of a branch.

The scalars are points in every variant, as normalization's gamma and beta are.
As in the published code they learn at a tenth of the rate of other weights: a
layer holds them in a unit of c = sqrt(scalar_rate), so that a gradient step of
the number c v is c^2 times as long. Their weight decay is at the full rate, and
the first convolution starts at the standard scale: two deviations.

References:
  H. Zhang, Y. Dauphin, T. Ma. Fixup initialization: residual learning without
  normalization. ICLR 2019.
"""

from typing import Annotated

import tf_keras

from bfl_tf.models import networks
from bfl_tf.settings import Setting

# So that Keras finds them in a saved model.
_registered = tf_keras.saving.register_keras_serializable(package='bfl_tf')


class _Scalar(tf_keras.layers.Layer):
  """Holds one number as a multiple of `unit`."""

  first = 0.0

  def __init__(self, unit: float, **kwargs):
    super().__init__(**kwargs)
    self.unit = unit

  def build(self, input_shape):
    start = tf_keras.initializers.Constant(self.first / self.unit)
    self.multiple = self.add_weight(
      name='multiple', shape=(), initializer=start
    )

  def get_config(self):
    return {**super().get_config(), 'unit': self.unit}


@_registered
class ScalarBias(_Scalar):
  """Adds one number, at first 0."""

  def call(self, inputs):
    return inputs + self.unit * self.multiple


@_registered
class ScalarFactor(_Scalar):
  """Multiplies by one number, at first 1."""

  first = 1.0

  def call(self, inputs):
    return inputs * (self.unit * self.multiple)


def fixup_resnet(
  blocks,
  x,
  num_classes,
  depth,
  scalar_rate: Annotated[
    float, Setting('Of SGD on scalars, beside that on other weights.', above=0)
  ] = 0.1,
):
  """A Fixup ResNet of depth 6n + 2 for small images."""
  unit = scalar_rate**0.5
  plan = networks.residual_blocks('fixup_resnet', depth, x)
  gain = len(plan) ** -0.5
  x = ScalarBias(unit)(blocks.conv(16, 3, x, use_bias=False))
  x = blocks.dropout(tf_keras.layers.ReLU()(x))
  for filters, strides in plan:
    x = _block(blocks, x, filters, strides, gain, unit)
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, ScalarBias(unit)(x), gain=0.0)


def _block(blocks, x, filters, strides, gain, unit):
  biased = ScalarBias(unit)(x)
  y = blocks.conv(
    filters, 3, biased, strides=strides, use_bias=False, gain=gain
  )
  y = tf_keras.layers.ReLU()(ScalarBias(unit)(y))
  y = ScalarBias(unit)(blocks.dropout(y))
  y = blocks.conv(filters, 3, y, use_bias=False, gain=0.0)
  y = blocks.dropout(ScalarBias(unit)(ScalarFactor(unit)(y)))
  # The published code's shortcut: biased where it is not the identity.
  x = x if strides == 1 else networks.shortcut(biased, filters, strides)
  return tf_keras.layers.ReLU()(x + y)
