"""Fixup: residual networks without normalization, by their initial weights.

Notation: L residual branches of m = 2 convolutions each.
  - The last convolution of a branch and the classifier start at zero, other
    convolutions of a branch at L^(-1 / (2m - 2)) times their standard scale.
  - A scalar bias stands before each convolution, each activation and the
    classifier, and a scalar factor behind the last convolution of a branch.

The scalars are points in every variant, as normalization's gamma and beta are.
As in the published code they learn at a tenth of the rate of other weights;
under Adam, which knows no sizes of gradients, at the same. Deviations: their
weight decay is at the full rate; the first convolution starts at the standard
scale, which is by inputs. With `released_start` it is as published.

References:
  H. Zhang, Y. Dauphin, T. Ma. Fixup initialization: residual learning without
  normalization. ICLR 2019.
"""

from __future__ import annotations

from typing import Annotated, Any

from bfl_tf.config.settings import Setting
from bfl_tf.models import networks
from bfl_tf.startup import Lazy, tf_keras

# Its classes inherit from Keras layers.
layers: Any = Lazy('bfl_tf.models.layers')


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
  # PyTorch's variance is 1 / (3 inputs), He's 2 / inputs.
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
  # The published code's shortcut: biased where it is not the identity.
  x = x if strides == 1 else networks.shortcut(biased, filters, strides)
  return tf_keras.layers.ReLU()(x + y)
