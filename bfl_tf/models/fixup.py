"""Fixup: residual networks without normalization, with scaled initial weights.

Notation: L residual branches of m = 2 convolutions each.
  - The last convolution of a branch and the classifier start at zero, other
    convolutions of a branch at L^(-1 / (2m - 2)) times their standard scale.
  - A scalar bias precedes each convolution, each activation and the
    classifier. A scalar factor follows the last convolution of a branch.

The scalars are deterministic in every variant, like gamma and beta of a
normalization. As in the published code, their learning rate is a tenth of the
rate of other weights. Adam ignores this factor, because it normalizes
gradients. Deviations: weight decay uses the full rate, the first convolution
has the standard scale, and this scale depends on the number of inputs.
`released_start` uses the published scales.

References:
  H. Zhang, Y. Dauphin, T. Ma. Fixup initialization: residual learning without
  normalization. ICLR 2019.
"""

from typing import Annotated, Any

from bfl_tf.declare.settings import Setting
from bfl_tf.models import networks
from bfl_tf.startup import LazyModule, tf_keras

# Loaded lazily, because its classes inherit from Keras layers.
layers: Any = LazyModule('bfl_tf.models.layers')


def fixup_resnet(
  blocks,
  x,
  num_classes,
  depth,
  scalar_rate: Annotated[
    float,
    Setting(
      'Learning rate of scalar parameters under SGD, relative to that '
      'of other weights.',
      gt=0,
    ),
  ] = 0.1,
  released_start: Annotated[
    bool,
    Setting(
      'Use the initialization of the published code: the first '
      "convolution at PyTorch's default scale, and branches scaled by "
      'their outputs.'
    ),
  ] = False,
):
  """A Fixup ResNet of depth 6n + 2 for small images."""
  plan = networks.residual_blocks('fixup_resnet', depth, x)
  gain = len(plan) ** -0.5
  # PyTorch's default variance is 1 / (3 inputs), He's variance 2 / inputs.
  stem = blocks.conv(
    16, 3, x, use_bias=False, gain=6**-0.5 if released_start else 1.0
  )
  x = layers.ScalarBias(scalar_rate)(stem)
  x = blocks.dropout(tf_keras.layers.ReLU()(x))
  for filters, strides in plan:
    by_outputs = (x.shape[-1] / filters) ** 0.5 if released_start else 1.0
    x = _block(blocks, x, filters, strides, gain * by_outputs, scalar_rate)
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, layers.ScalarBias(scalar_rate)(x), gain=0.0)


def _block(blocks, x, filters, strides, gain, rate):
  biased = layers.ScalarBias(rate)(x)
  y = blocks.conv(
    filters, 3, biased, strides=strides, use_bias=False, gain=gain
  )
  y = tf_keras.layers.ReLU()(layers.ScalarBias(rate)(y))
  y = layers.ScalarBias(rate)(blocks.dropout(y))
  y = blocks.conv(filters, 3, y, use_bias=False, gain=0.0)
  y = blocks.dropout(layers.ScalarBias(rate)(layers.ScalarFactor(rate)(y)))
  # As in the published code, only a downsampling shortcut has the bias.
  x = x if strides == 1 else networks.shortcut(biased, filters, strides)
  return tf_keras.layers.ReLU()(x + y)
