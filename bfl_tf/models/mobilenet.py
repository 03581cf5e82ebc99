"""MobileNetV2, also for small images.

The paper's network halves 224x224 images five times. For smaller images, two
strides are 1 instead of 2: the first convolution's below 64 pixels, and the
second stage's below 128. So the last map is 4x4 for images of 32x32, 64x64 and
128x128, and 7x7 at 224x224, as in the paper. The weights keep their shapes.

References:
  M. Sandler et al. MobileNetV2: Inverted residuals and linear bottlenecks.
  CVPR 2018, table 2.
"""

import dataclasses
from typing import Annotated

from bfl_tf.models import networks
from bfl_tf.startup import tf_keras


def mobilenetv2(
  blocks,
  x,
  num_classes,
  normalization: Annotated[str, networks.NORMALIZATION] = 'batch',
):
  """MobileNetV2 of width 1: 2 236 682 weights for three channels, ten classes.

  The depthwise convolutions have 64 224 of them, deterministic in every
  variant.
  """
  networks.need_images(x, 8, 'mobilenetv2')
  blocks = dataclasses.replace(blocks, normalization=normalization)
  size = min(x.shape[1:3])
  first, second = (2 if size >= least else 1 for least in (64, 128))
  x = _relu6(blocks.conv_norm(32, 3, x, strides=first))
  for expansion, filters, repeats, strides in (
    (1, 16, 1, 1),
    (6, 24, 2, second),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
  ):
    for block in range(repeats):
      x = _bottleneck(blocks, x, expansion, filters, 1 if block else strides)
  x = _relu6(blocks.conv_norm(1280, 1, x))
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, x)


def _bottleneck(blocks, x, expansion, filters, strides):
  """An inverted residual: expand, filter each channel, project linearly."""
  y, channels = x, x.shape[-1]
  if expansion > 1:
    y = _relu6(blocks.conv_norm(expansion * channels, 1, y))
  y = _relu6(blocks.depthwise_norm(3, y, strides=strides))
  y = blocks.conv_norm(filters, 1, y)
  return x + y if strides == 1 and channels == filters else y


def _relu6(x):
  return tf_keras.layers.ReLU(6.0)(x)
