"""Stochastic layers with randomness from `seeding.scope`.

TFP's Flipout layers and Keras' Dropout use stateful or unseeded random ops. The
layers here have the same distributions but use explicit seeds, and they may
compute a convolution in another way. `scale = softplus(rho)` has no added
epsilon, because pooling may shrink scales every round. Before a saved model is
loaded, the process must import this module.

References:
  Y. Wen et al. Flipout: Efficient pseudo-independent weight perturbations on
  mini-batches. ICLR 2018.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from bfl_tf import seeds
from bfl_tf.models import seeding
from bfl_tf.startup import tf, tf_keras, tfd, tfp

# Largest ratio of kernel size to activation size for which a convolution uses a
# separate kernel per example.
_LARGEST_KERNEL = 2

# Registration lets Keras load the layers from a saved model.
_registered = tf_keras.saving.register_keras_serializable(package='bfl_tf')


def mean_field_normal(loc_initializer, initial_scale: float):
  """Returns a TFP `*_posterior_fn`: Normal(loc, softplus(rho))."""
  rho = initial_scale + math.log(-math.expm1(-initial_scale))

  def posterior(dtype, shape, name, trainable, add_variable):
    # TFP passes the layer's deprecated `add_variable`, an alias of this.
    add_weight = add_variable.__self__.add_weight
    loc = add_weight(
      name=f'{name}_loc',
      shape=shape,
      dtype=dtype,
      initializer=loc_initializer,
      trainable=trainable,
    )
    untransformed = add_weight(
      name=f'{name}_untransformed_scale',
      shape=shape,
      dtype=dtype,
      initializer=tf_keras.initializers.Constant(rho),
      trainable=trainable,
    )
    scale = tfp.util.DeferredTensor(untransformed, tf.nn.softplus)
    return tfd.Independent(
      tfd.Normal(loc, scale), reinterpreted_batch_ndims=len(shape)
    )

  return posterior


class _SeededFlipout(tf_keras.layers.Layer):
  """Flipout with stateless signs and samples, and without a KL loss.

  The objective (`training.objectives`) contains the KL term, because the prior
  may change every round. `product_dtype` is the type of the products' factors;
  by default, it is that of Keras' global policy. All else is float32.
  """

  def __init__(
    self,
    *args,
    kernel_initializer,
    initial_scale,
    bias_initializer='zeros',
    use_bias=True,
    product_dtype=None,
    dtype='float32',
    **kwargs,
  ):
    kernel_initializer = tf_keras.initializers.get(kernel_initializer)
    bias_initializer = tf_keras.initializers.get(bias_initializer)
    of_bias = mean_field_normal(bias_initializer, initial_scale)
    super().__init__(
      *args,
      kernel_posterior_fn=mean_field_normal(kernel_initializer, initial_scale),
      kernel_prior_fn=None,
      kernel_divergence_fn=None,
      bias_posterior_fn=of_bias if use_bias else None,
      bias_posterior_tensor_fn=lambda q: q.distribution.loc + _noise(q),
      bias_divergence_fn=None,
      dtype=dtype,
      **kwargs,
    )
    self.kernel_initializer = kernel_initializer
    self.bias_initializer = bias_initializer
    self.initial_scale, self.use_bias = initial_scale, use_bias
    policy = tf_keras.mixed_precision.global_policy()
    self.product_dtype = product_dtype or policy.compute_dtype

  def get_config(self):
    # TFP would store functions as bytecode of one Python version.
    named = {k: v for k, v in super().get_config().items() if '_fn' not in k}
    return named | {
      'kernel_initializer': tf_keras.initializers.serialize(
        self.kernel_initializer
      ),
      'bias_initializer': tf_keras.initializers.serialize(
        self.bias_initializer
      ),
      'initial_scale': self.initial_scale,
      'use_bias': self.use_bias,
      'product_dtype': self.product_dtype,
    }

  @classmethod
  def from_config(cls, config):
    return cls(**config)

  def call(self, inputs):
    return tf.cast(super().call(inputs), self.product_dtype)

  def _apply_variational_kernel(self, inputs):
    self.kernel_posterior_tensor = None
    kernel = self.kernel_posterior.distribution.loc
    noise = _noise(self.kernel_posterior)
    inputs, kernel, noise = (
      tf.cast(v, self.product_dtype) for v in (inputs, kernel, noise)
    )
    if seeding.draws() != 'per_example':
      outputs = self._linear(inputs, kernel + noise)
    else:
      signs = [_signs(inputs, size) for size in noise.shape[-2:]]
      outputs = self._perturbed(inputs, kernel, noise, *signs)
    return tf.cast(outputs, self.dtype)

  def _perturbed(self, inputs, kernel, noise, input_signs, output_signs):
    """Applies to example b the kernel `kernel + noise * s[b, :, None] * r[b]`.

    Args:
      input_signs: s, `[batch, channels]`.
      output_signs: r, `[batch, filters]`.
    """
    flipped = self._linear(inputs * _broadcast(input_signs, inputs), noise)
    flipped *= _broadcast(output_signs, flipped)
    return self._linear(inputs, kernel) + flipped


def _noise(posterior):
  return seeding.noise_of(posterior.distribution.scale.pretransformed_input)


def _signs(inputs, size):
  bits = seeds.bits([tf.shape(inputs)[0], size], seeding.next_seed())
  one = tf.ones([], inputs.dtype)
  return tf.where(bits < 0, -one, one)


def _broadcast(signs, tensor):
  """Returns signs as `[batch, 1, ..., channels]`, with the tensor's rank."""
  middle = [1] * (len(tensor.shape) - 2)
  return tf.reshape(signs, [-1, *middle, signs.shape[-1]])


@tf.custom_gradient
def add_bias(outputs, bias):
  """Adds biases, with a gradient that is summed in float32.

  TensorFlow's CPU kernel `BiasAddGrad` sums bfloat16 in bfloat16.
  """

  def gradients(upstream):
    total = tf.cast(upstream, tf.float32)
    total = tf.reduce_sum(total, list(range(len(upstream.shape) - 1)))
    return upstream, tf.cast(total, bias.dtype)

  return tf.nn.bias_add(outputs, bias), gradients


class _SummedBias(tf_keras.layers.Layer):
  """Adds biases by `add_bias`, for networks in bfloat16."""

  def build(self, input_shape):
    super().build(input_shape)
    self.use_bias = False  # `call` adds the bias.

  def call(self, inputs):
    outputs = super().call(inputs)
    return outputs if self.bias is None else add_bias(outputs, self.bias + 0)

  def get_config(self):
    return {**super().get_config(), 'use_bias': self.bias is not None}


@_registered
class Dense(_SummedBias, tf_keras.layers.Dense):
  """A dense layer for bfloat16."""


@_registered
class Conv2D(_SummedBias, tf_keras.layers.Conv2D):
  """A convolution for bfloat16."""


@_registered
class DepthwiseConv2D(_SummedBias, tf_keras.layers.DepthwiseConv2D):
  """A depthwise convolution for bfloat16."""


@_registered
class DenseFlipout(_SeededFlipout, tfp.layers.DenseFlipout):
  """`tfp.layers.DenseFlipout`, seeded by `seeding.scope`."""

  def _linear(self, inputs, kernel):
    return tf.matmul(inputs, kernel)


@_registered
class Conv2DFlipout(_SeededFlipout, tfp.layers.Convolution2DFlipout):
  """`tfp.layers.Convolution2DFlipout`, seeded by `seeding.scope`."""

  def _linear(self, inputs, kernel):
    return self._convolution_op(inputs, kernel)

  def _perturbed(self, inputs, kernel, noise, input_signs, output_signs):
    """Computes the same as one grouped convolution with a group per example."""
    _, *sizes, filters = self.compute_output_shape(inputs.shape)
    channels = kernel.shape[-2]
    values = math.prod(sizes) * (channels + filters) if all(sizes) else 0
    too_large = kernel.shape.num_elements() > _LARGEST_KERNEL * values
    if too_large or not _has_grouped_gradients():
      return super()._perturbed(
        inputs, kernel, noise, input_signs, output_signs
      )
    signs = tf.transpose(input_signs)[:, :, None] * output_signs
    kernels = kernel[..., None, :] + noise[..., None, :] * signs
    outputs = tf.nn.conv2d(
      _batch_as_channels(inputs),
      tf.reshape(kernels, [*kernel.shape[:3], -1]),
      self.strides,
      self.padding.upper(),
      dilations=self.dilation_rate,
    )
    shape = [*outputs.shape[1:3], -1, kernel.shape[-1]]
    return tf.transpose(tf.reshape(outputs, shape), [2, 0, 1, 3])


def _batch_as_channels(images):
  """Returns `[batch, h, w, channels]` as `[1, h, w, batch * channels]`."""
  _, height, width, _ = images.shape
  moved = tf.transpose(images, [1, 2, 0, 3])
  return tf.reshape(moved, [1, height, width, -1])


@functools.cache
def _has_grouped_gradients() -> bool:
  """Returns whether TensorFlow differentiates grouped convolutions on this CPU.

  This needs oneDNN. On GPUs it is False, because their speed is unknown.
  """
  if tf.config.list_physical_devices('GPU'):
    return False

  @tf.function
  def gradients(images, kernels):
    outputs = tf.nn.conv2d(images, kernels, 1, 'SAME')
    return tf.gradients(outputs, [images, kernels])

  with tf.init_scope():
    try:
      gradients(tf.ones([1, 3, 3, 4]), tf.ones([3, 3, 2, 4]))
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
      return False
  return True


@_registered
class MCDropout(tf_keras.layers.Layer):
  """Dropout that is also active at inference, seeded by `seeding.scope`.

  References:
    Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation. ICML 2016.
  """

  def __init__(self, rate: float, **kwargs: Any):
    super().__init__(**kwargs)
    self.rate = rate

  def call(self, inputs):
    shape, draws = tf.shape(inputs), seeding.draws()
    if draws == 'none':
      return inputs
    if draws == 'once':
      shape = tf.concat([[1], shape[1:]], 0)
    uniform = seeds.uniform(shape, seeding.next_seed())
    mask = tf.cast(uniform >= self.rate, inputs.dtype)
    return inputs * (mask * (1.0 / (1.0 - self.rate)))

  def get_config(self):
    return {**super().get_config(), 'rate': self.rate}


@_registered
class Dropout(MCDropout):
  """Dropout in training only, seeded by `seeding.scope`."""

  def call(self, inputs, training=False):
    return super().call(inputs) if training else inputs


@_registered
class Constants(tf_keras.layers.Layer):
  """Appends trained constants, initially 0, to the outputs of each example."""

  def __init__(self, count: int, **kwargs):
    super().__init__(**kwargs)
    self.count = count

  def build(self, input_shape):
    self.constants = self.add_weight(
      name='constants', shape=(self.count,), initializer='zeros'
    )

  def call(self, inputs):
    shape = [tf.shape(inputs)[0], self.count]
    return tf.concat([inputs, tf.broadcast_to(self.constants, shape)], 1)

  def get_config(self):
    return {**super().get_config(), 'count': self.count}


class _Scalar(tf_keras.layers.Layer):
  """A layer with one scalar weight whose gradient is scaled by `rate`."""

  def __init__(self, rate: float, **kwargs):
    super().__init__(**kwargs)
    self.rate = rate

  def build(self, input_shape):
    self.scalar = self.add_weight(
      name='scalar', shape=(), initializer=self.initializer
    )

  def number(self):
    """Returns the exact value, with a scaled gradient."""
    value = tf.stop_gradient(self.scalar)
    return value + self.rate * (self.scalar - value)

  def get_config(self):
    return {**super().get_config(), 'rate': self.rate}


@_registered
class ScalarBias(_Scalar):
  """Adds a trainable scalar, initially 0."""

  initializer = 'zeros'

  def call(self, inputs):
    return inputs + self.number()


@_registered
class ScalarFactor(_Scalar):
  """Multiplies by a trainable scalar, initially 1."""

  initializer = 'ones'

  def call(self, inputs):
    return inputs * self.number()
