"""Builder of Keras networks by name, in one of three variants.

A user-supplied builder has the name `package.module:function` and returns a
model whose outputs are logits. It receives those keyword arguments of `build`
that its signature names.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

from absl import logging
import numpy as np

from bfl_tf.declare import registry, settings, user_code
from bfl_tf.models import fixup, mobilenet, networks
from bfl_tf.models.seeding import next_seed, scope
from bfl_tf.models.variants import Blocks, KERNEL_INITIALIZERS, VARIANTS
from bfl_tf.startup import tf_keras

NETWORKS: dict[str, Any] = {
  'logistic': networks.logistic,
  'mlp': networks.mlp,
  'lenet5': networks.lenet5,
  'convnet': networks.convnet,
  'resnet<depth>': networks.resnet,
  'fixup_resnet<depth>': fixup.fixup_resnet,
  'resnet18': networks.resnet18,
  'mobilenetv2': mobilenet.mobilenetv2,
}


def build(
  name: str,
  *,
  variant: str = 'flipout',
  input_shape: tuple[int, ...],
  num_classes: int,
  kernel_initializer: str = 'he_normal',
  seed: int = 0,
  num_constants: int = 0,
  mixed_precision: bool = False,
  **own: Any,
) -> tf_keras.Model:
  """Builds a Keras model whose outputs are the parameters of a likelihood.

  Args:
    name: `logistic`, `mlp`, `lenet5`, `convnet`, `resnet<depth>` and
      `fixup_resnet<depth>` with depth 6n + 2, `resnet18`, `mobilenetv2`, or
      `package.module:function`.
    num_classes: Number of outputs of the network: logits of classes, or
      parameters of another likelihood.
    num_constants: Number of trained outputs that do not depend on the input,
      appended to those of the network.
    mixed_precision: Whether layers compute in bfloat16. Variables, outputs,
      statistics of normalizations and noise are float32.
    **own: Settings of the network (`hidden_units` of the mlp) and of the
      variant (`initial_scale` of flipout).
  """
  network = registry.resolve('model', name, NETWORKS)
  kind = registry.resolve('variant', variant, VARIANTS)
  of_variant = {k: own[k] for k in settings.of(kind) if k in own}
  if ':' in name:
    with _policy(mixed_precision):
      model = _users_own(
        name,
        network,
        variant=variant,
        input_shape=input_shape,
        num_classes=num_classes,
        kernel_initializer=kernel_initializer,
        seed=seed,
        **own,
      )
    return _completed(model, num_constants)
  of_network = {k: own[k] for k in settings.of(network) if k in own}
  unknown = sorted(set(own) - set(of_variant) - set(of_network))
  if unknown:
    raise ValueError(
      f'{", ".join(unknown)}: neither the model {name} nor the variant '
      f'{variant} has such a setting.'
    )
  blocks = Blocks(kind(**of_variant), kernel_initializer, seed)
  inputs = tf_keras.Input(input_shape)
  with _policy(mixed_precision):
    outputs = network(blocks, inputs, num_classes, **of_network)
  return _completed(tf_keras.Model(inputs, outputs), num_constants)


@contextlib.contextmanager
def _policy(mixed_precision):
  """Sets the data types of Keras layers."""
  keras = tf_keras.mixed_precision
  before = keras.global_policy()
  keras.set_global_policy('mixed_bfloat16' if mixed_precision else before)
  try:
    yield
  finally:
    keras.set_global_policy(before)


def _completed(model, num_constants):
  """Returns the model with float32 outputs and with constants."""
  outputs = model.output
  if outputs.dtype != 'float32':
    outputs = tf_keras.layers.Activation('linear', dtype='float32')(outputs)
  if num_constants:
    from bfl_tf.models import layers  # The import needs TensorFlow.

    outputs = layers.Constants(num_constants)(outputs)
  if outputs is model.output:
    return model
  return tf_keras.Model(model.input, outputs)


def last_layer(model: tf_keras.Model) -> tf_keras.layers.Layer:
  """Returns the last layer with trainable weights that has an input.

  The layer after it may contain constants, such as the scale of the noise.
  """
  from bfl_tf.models import layers  # The import needs TensorFlow.

  trained = [
    layer
    for layer in model.layers
    if layer.trainable_variables and not isinstance(layer, layers.Constants)
  ]
  return trained[-1]


def _users_own(name, builder, **offered):
  # Unseeded initializers draw from Keras' global generators.
  tf_keras.utils.set_random_seed(offered['seed'])
  names = inspect.signature(builder).parameters
  named = {k: v for k, v in offered.items() if k in names}
  model = user_code.call(f'--model={name}', functools.partial(builder, **named))
  _check_model(name, model, offered['num_classes'])
  _check_randomness(name, model)
  return model


def _check_model(name, model, num_classes):
  built = isinstance(model, tf_keras.Model) and model.built
  shape = model.output_shape if built else None
  # A model with several outputs has a list of shapes.
  if not isinstance(shape, tuple) or shape[1:] != (num_classes,):
    kind = type(model)
    raise ValueError(
      f'--model={name} must return a tf_keras model (Keras 2), begun with '
      f'tf_keras.Input(input_shape), whose outputs are logits (None, '
      f'{num_classes}); got {kind.__module__}.{kind.__name__} with outputs '
      f'of shape {shape}.'
    )


def check_logits(name: str, model: tf_keras.Model) -> None:
  """Rejects a model whose outputs are probabilities instead of logits."""
  shape = (8, *model.input_shape[1:])
  x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
  with scope(np.zeros(2, np.int32)):
    outputs = model(x, training=False).numpy()
  if outputs.min() >= 0 and np.allclose(outputs.sum(-1), 1, atol=1e-4):
    raise ValueError(
      f'--model={name} ends in a softmax: remove it, the outputs must be '
      'logits.'
    )


def _check_randomness(name, model):
  for layer in model.submodules:
    if isinstance(layer, tf_keras.layers.Dropout):
      logging.warning(
        '%s: Keras dropout draws from a stateful generator, so results depend '
        'on --num_workers; those of bfl_tf.models.layers.Dropout do not.',
        name,
      )
    if getattr(layer, 'kernel_divergence_fn', None):
      raise ValueError(
        f'--model={name}: {layer.name} adds its own KL term, which the '
        'objective already contains: use the layers of bfl_tf.models.layers, '
        'or set kernel_divergence_fn=None and bias_divergence_fn=None.'
      )
