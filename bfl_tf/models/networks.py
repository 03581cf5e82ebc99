"""Networks, each a function `(blocks, inputs, num_classes) -> logits`.

References:
  LeNet-5: Y. LeCun et al. Gradient-based learning applied to document
    recognition. Proc. IEEE 1998. 61 706 weights at 28x28x1.
  ConvNet: H. Chen, W. Chao. FedBE. ICLR 2021, section 5.1.
  ResNet: K. He et al. Deep residual learning for image recognition.
    CVPR 2016, section 4.2: depth 6n + 2, parameter-free shortcuts (option A);
    ResNet-18 as for ImageNet, with a 3x3 stem and no pool before its blocks.
"""

import dataclasses
from typing import Annotated

from bfl_tf.declare.settings import Setting
from bfl_tf.models import variants
from bfl_tf.startup import tf, tf_keras

ACTIVATIONS = ('relu', 'sigmoid', 'tanh')
# Shared by all networks with normalization layers.
NORMALIZATION = Setting(
  'Normalization layer after each convolution.', choices=variants.NORMALIZATIONS
)


def logistic(blocks, x, num_classes):
  """Multinomial logistic regression."""
  return blocks.dense(num_classes, tf_keras.layers.Flatten()(x))


def mlp(
  blocks,
  x,
  num_classes,
  hidden_units: Annotated[
    tuple[int, ...], Setting('Number of units in each hidden layer.', ge=1)
  ] = (64,),
  activation: Annotated[
    str, Setting('Activation of the hidden layers.', choices=ACTIVATIONS)
  ] = 'relu',
):
  """A multilayer perceptron."""
  x = tf_keras.layers.Flatten()(x)
  for units in hidden_units:
    x = blocks.hidden(units, x, activation)
  return blocks.dense(num_classes, x)


def lenet5(
  blocks,
  x,
  num_classes,
  width: Annotated[
    int, Setting('Factor of the numbers of filters and hidden units.', ge=1)
  ] = 1,
):
  """The classic LeNet-5 with ReLU and max pooling."""
  need_images(x, 12, 'lenet5')
  first = 'valid' if x.shape[1] >= 32 else 'same'
  for filters, padding in ((6, first), (16, 'valid')):
    x = blocks.conv(width * filters, 5, x, padding=padding)
    x = tf_keras.layers.ReLU()(x)
    x = tf_keras.layers.MaxPooling2D()(blocks.dropout(x))
  x = tf_keras.layers.Flatten()(x)
  for units in (120, 84):
    x = blocks.hidden(width * units, x)
  return blocks.dense(num_classes, x)


def convnet(
  blocks,
  x,
  num_classes,
  extra_layers: Annotated[
    int, Setting('Number of additional convolutions after the third.', ge=0)
  ] = 0,
):
  """FedBE's ConvNet: 32, 64, 64 valid 3x3 filters, two pools, 64 dense.

  Figure 4 adds convolutions at an unspecified place. Here `extra_layers` with
  64 3x3 filters and `same` padding follow the third convolution.
  """
  need_images(x, 18, 'convnet')
  for filters, pool in ((32, True), (64, True), (64, False)):
    x = tf_keras.layers.ReLU()(blocks.conv(filters, 3, x, padding='valid'))
    x = blocks.dropout(x)
    if pool:
      x = tf_keras.layers.MaxPooling2D()(x)
  for _ in range(extra_layers):
    x = blocks.dropout(tf_keras.layers.ReLU()(blocks.conv(64, 3, x)))
  x = blocks.hidden(64, tf_keras.layers.Flatten()(x))
  return blocks.dense(num_classes, x)


def resnet(
  blocks,
  x,
  num_classes,
  depth,
  normalization: Annotated[str, NORMALIZATION] = 'batch',
):
  """ResNet of depth 6n + 2 for small images."""
  plan = residual_blocks('resnet', depth, x)
  blocks = dataclasses.replace(blocks, normalization=normalization)
  relu = tf_keras.layers.ReLU
  x = relu()(blocks.conv_norm(16, 3, x))
  for filters, strides in plan:
    y = relu()(blocks.conv_norm(filters, 3, x, strides=strides))
    y = blocks.conv_norm(filters, 3, y)
    x = relu()(tf.add_n([shortcut(x, filters, strides), y]))
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, x)


def resnet18(
  blocks, x, num_classes, normalization: Annotated[str, NORMALIZATION] = 'batch'
):
  """ResNet-18 with a 3x3 stem, for small images; shortcuts are projections."""
  need_images(x, 8, 'resnet18')
  blocks = dataclasses.replace(blocks, normalization=normalization)
  relu = tf_keras.layers.ReLU
  x = relu()(blocks.conv_norm(64, 3, x))
  for stage, filters in enumerate((64, 128, 256, 512)):
    for block in range(2):
      strides = 2 if stage > 0 and block == 0 else 1
      y = relu()(blocks.conv_norm(filters, 3, x, strides=strides))
      y = blocks.conv_norm(filters, 3, y)
      if strides == 2:
        x = blocks.conv_norm(filters, 1, x, strides=2)
      x = relu()(tf.add_n([x, y]))
  x = tf_keras.layers.GlobalAveragePooling2D()(x)
  return blocks.dense(num_classes, x)


def residual_blocks(name, depth, x):
  """Returns filters and strides of the blocks of a ResNet of this depth."""
  if depth < 8 or depth % 6 != 2:
    lower = max(8, depth - (depth - 2) % 6)
    raise ValueError(
      f'--model={name}{depth}: {name} depth must be 6n + 2, as {name}{lower} '
      f'or {name}{lower + 6}, got {depth}.'
    )
  need_images(x, 4, f'{name}{depth}')
  return [
    (filters, 2 if filters > 16 and block == 0 else 1)
    for filters in (16, 32, 64)
    for block in range((depth - 2) // 6)
  ]


def shortcut(x, filters, strides):
  """Returns the shortcut (option A): subsampling, and zeros as new channels."""
  if strides == 1:
    return x
  extra = filters - x.shape[-1]
  # Equal to x[:, ::strides, ::strides]; the gradient of slices is slow.
  x = tf.nn.avg_pool2d(x, 1, strides, 'SAME')
  return tf.pad(x, [[0, 0]] * 3 + [[0, extra]])


def need_images(x, size, name):
  """Raises a ValueError unless `x` contains images of at least `size`."""
  if len(x.shape) != 4 or min(x.shape[1:3]) < size:
    raise ValueError(
      f'--model={name} needs images of at least {size}x{size}, got examples '
      f'of shape {tuple(x.shape[1:])}; --model=mlp takes any.'
    )
