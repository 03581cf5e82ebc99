"""Keras builders: a network by name, in one of three variants.

A user's own builder is named `package.module:function`, is called with
`variant`, `input_shape` and `num_classes`, and returns a model with logits out.
"""

import functools
import re

from absl import logging
import tf_keras

from bfl_tf import registry
from bfl_tf.models import mobilenet, networks
from bfl_tf.models.seeding import next_seed, scope
from bfl_tf.models.variants import (
  Blocks,
  KERNEL_INITIALIZERS,
  NORMALIZATIONS,
  VARIANTS,
)

__all__ = [
  'KERNEL_INITIALIZERS',
  'NETWORKS',
  'NORMALIZATIONS',
  'VARIANTS',
  'build',
  'next_seed',
  'scope',
]

HIDDEN_UNITS = (64,)
NETWORKS = {
  'logistic': networks.logistic,
  'mlp': networks.mlp,
  'lenet5': networks.lenet5,
  'convnet': networks.convnet,
  'resnet20': functools.partial(networks.resnet, depth=20),
  'mobilenetv2': mobilenet.mobilenetv2,
}


def build(
  name: str,
  *,
  variant: str,
  input_shape: tuple[int, ...],
  num_classes: int,
  normalization: str = 'batch',
  hidden_units: tuple[int, ...] = HIDDEN_UNITS,
  extra_layers: int = 0,
  initial_scale: float = 0.05,
  kernel_initializer: str = 'he_normal',
  dropout_rate: float = 0.2,
  seed: int = 0,
) -> tf_keras.Model:
  """Builds a Keras model with logits out.

  Args:
    name: `logistic`, `mlp`, `lenet5`, `convnet`, `resnet<depth>` with depth
      6n + 2, `mobilenetv2`, or `package.module:function`.
    variant: `deterministic`, `mc_dropout` or `flipout`.
    input_shape: of one example.
    num_classes: length of the logits.
    normalization: of a ResNet and MobileNetV2: `batch`, `group` or `none`.
    hidden_units: of the `mlp`.
    extra_layers: convolutions that `convnet` has more.
    initial_scale: standard deviation that variational weights start with.
    kernel_initializer: of kernels or their means, `he_normal` or
      `glorot_uniform`; biases start at zero.
    dropout_rate: of `mc_dropout`.
    seed: the initial weights depend on it alone.

  Raises:
    ValueError: an unknown name or choice, or images too small for the network.
  """
  if ':' in name:
    return _users_own(name, variant, input_shape, num_classes, seed)
  resnet = re.fullmatch(r'resnet(\d+)', name)
  if resnet:
    network = functools.partial(networks.resnet, depth=int(resnet[1]))
  else:
    network = registry.resolve('model', name, NETWORKS)
  if name == 'mlp':
    network = functools.partial(network, hidden_units=hidden_units)
  if name == 'convnet':
    network = functools.partial(network, extra_layers=extra_layers)
  blocks = Blocks(
    variant,
    normalization,
    initial_scale,
    kernel_initializer,
    dropout_rate,
    seed,
  )
  inputs = tf_keras.Input(input_shape)
  return tf_keras.Model(inputs, network(blocks, inputs, num_classes))


def _users_own(name, variant, input_shape, num_classes, seed):
  builder = registry.resolve('model', name, {})
  # An unseeded initializer draws from Keras' global generators.
  tf_keras.utils.set_random_seed(seed)
  model = builder(
    variant=variant, input_shape=input_shape, num_classes=num_classes
  )
  _check_randomness(name, model)
  if model.output_shape[-1] != num_classes:
    raise ValueError(
      f'--model={name} returns {model.output_shape[-1]} logits for '
      f'{num_classes} classes.'
    )
  return model


def _check_randomness(name, model):
  for layer in model.submodules:
    if isinstance(layer, tf_keras.layers.Dropout):
      logging.warning(
        '%s: Keras dropout draws from a stateful generator, so results depend '
        'on --num_workers; bfl_tf.models.layers.MCDropout does not.',
        name,
      )
    if getattr(layer, 'kernel_divergence_fn', None):
      raise ValueError(
        f'--model={name}: {layer.name} adds its own divergence, which the '
        'objective has already: take the layers of bfl_tf.models.layers, or '
        'kernel_divergence_fn=None and bias_divergence_fn=None.'
      )
