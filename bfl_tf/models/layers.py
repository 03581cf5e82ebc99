"""Stochastic layers that take their randomness from `seeding.scope`.

TFP's Flipout layers draw their signs from a stateful op and sample biases
unseeded; Keras' Dropout is stateful too. The subclasses here change nothing
but where the random bits come from, and `scale = softplus(rho)` carries no
added epsilon: a pooled scale shrinks by the number of clients every round.
Keras saves them with a model; the process that loads it imports this module.

References:
  Y. Wen et al. Flipout: Efficient pseudo-independent weight perturbations on
  mini-batches. ICLR 2018.
"""

import math
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow_probability import distributions as tfd
import tf_keras

from bfl_tf.models import seeding

# So that Keras finds them in a saved model.
_registered = tf_keras.saving.register_keras_serializable(package='bfl_tf')


def mean_field_normal(loc_initializer, initial_scale: float):
  """Returns a TFP `*_posterior_fn`: Normal(loc, softplus(rho))."""
  rho = initial_scale + math.log(-math.expm1(-initial_scale))

  def posterior(dtype, shape, name, trainable, add_variable):
    # TFP hands the layer's deprecated `add_variable`; this is what it calls.
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
  """Flipout with stateless signs and samples, and no loss of its own.

  The divergence to the prior is the training objective's business
  (`training.objectives`), where the prior may change every round.
  """

  def __init__(
    self, *args, kernel_initializer, initial_scale, use_bias=True, **kwargs
  ):
    kernel_initializer = tf_keras.initializers.get(kernel_initializer)
    zeros = tf_keras.initializers.Zeros()
    super().__init__(
      *args,
      kernel_posterior_fn=mean_field_normal(kernel_initializer, initial_scale),
      kernel_prior_fn=None,
      kernel_divergence_fn=None,
      bias_posterior_fn=(
        mean_field_normal(zeros, initial_scale) if use_bias else None
      ),
      bias_posterior_tensor_fn=lambda q: q.distribution.loc + _noise(q),
      bias_divergence_fn=None,
      **kwargs,
    )
    self.kernel_initializer = kernel_initializer
    self.initial_scale, self.use_bias = initial_scale, use_bias

  def get_config(self):
    # TFP would write its functions down, as the bytecode of one interpreter.
    named = {k: v for k, v in super().get_config().items() if '_fn' not in k}
    return named | {
      'kernel_initializer': tf_keras.initializers.serialize(
        self.kernel_initializer
      ),
      'initial_scale': self.initial_scale,
      'use_bias': self.use_bias,
    }

  @classmethod
  def from_config(cls, config):
    return cls(**config)

  def _linear(self, inputs, kernel):
    raise NotImplementedError

  def _apply_variational_kernel(self, inputs):
    self.kernel_posterior_tensor = None
    kernel = self.kernel_posterior.distribution.loc
    noise = _noise(self.kernel_posterior)
    flipped = self._linear(inputs * _signs(inputs), noise)
    return self._linear(inputs, kernel) + flipped * _signs(flipped)


def _noise(posterior):
  """A sample of N(0, scale^2) for a posterior's whole kernel or bias."""
  scale = posterior.distribution.scale + 0.0  # Read the deferred value once.
  return scale * tf.random.stateless_normal(
    scale.shape, seeding.next_seed(), dtype=scale.dtype
  )


def _signs(tensor):
  """A sign per example and channel, shared over the spatial axes."""
  middle = [1] * (len(tensor.shape) - 2)
  bits = tf.random.stateless_uniform(
    [tf.shape(tensor)[0], *middle, tensor.shape[-1]],
    seeding.next_seed(),
    minval=None,
    maxval=None,
    dtype=tf.int32,
  )
  one = tf.ones([], tensor.dtype)
  return tf.where(bits < 0, -one, one)


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


@_registered
class MCDropout(tf_keras.layers.Layer):
  """Dropout that stays on at inference, seeded by `seeding.scope`.

  References:
    Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation. ICML 2016.
  """

  def __init__(self, rate: float, **kwargs: Any):
    super().__init__(**kwargs)
    self.rate = rate

  def call(self, inputs):
    return tf.nn.experimental.stateless_dropout(
      inputs, self.rate, seed=seeding.next_seed()
    )

  def get_config(self):
    return {**super().get_config(), 'rate': self.rate}
