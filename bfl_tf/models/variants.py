"""Building blocks of networks in three variants.

Networks are functions of `Blocks`. The variant determines the layers:

  deterministic   plain Keras layers
  mc_dropout      dropout after each convolution's normalization and each
                  hidden dense layer, also at inference
  flipout         variational kernels and biases; depthwise convolutions stay
                  deterministic (TFP has no Flipout for them), like gamma and
                  beta of normalizations
"""

from collections.abc import Iterator
import dataclasses
import itertools
import math
from typing import Any, ClassVar

from bfl_tf.declare import registry
from bfl_tf.declare.settings import setting
from bfl_tf.startup import LazyModule, tf_keras

# Loaded lazily, because its classes inherit from TFP's layers.
stochastic: Any = LazyModule('bfl_tf.models.layers')
NORMALIZATIONS = ('batch', 'group', 'none')
# Arguments of `tf_keras.initializers.VarianceScaling`.
KERNEL_INITIALIZERS: dict[str, tuple] = {
  'he_normal': (2.0, 'fan_in', 'truncated_normal'),
  'glorot_uniform': (1.0, 'fan_avg', 'uniform'),
  # U(-b, b) with b = 1 / sqrt(inputs), also for biases.
  'torch': (1 / 3, 'fan_in', 'uniform'),
}


@dataclasses.dataclass(frozen=True)
class Deterministic:
  """Plain Keras layers.

  Attributes:
    is_random: Whether layers draw weights or masks at each prediction.
    is_point: Whether the weights of layers have no posterior.
    is_variational: Whether they have one.
  """

  is_random: ClassVar[bool] = False
  is_point: ClassVar[bool] = True
  is_variational: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class MCDropout(Deterministic):
  """Dropout at inference (Gal & Ghahramani 2016)."""

  is_random: ClassVar[bool] = True
  rate: float = setting(0.2, 'Probability of dropping a unit.', ge=0, lt=1)


@dataclasses.dataclass(frozen=True)
class Flipout:
  """Gaussian weights with Flipout (Wen et al. 2018)."""

  is_random: ClassVar[bool] = True
  is_point: ClassVar[bool] = False
  is_variational: ClassVar[bool] = True
  initial_scale: float = setting(
    0.05, 'Initial standard deviation of the weights.', gt=0
  )


VARIANTS: dict[str, Any] = {
  'deterministic': Deterministic,
  'mc_dropout': MCDropout,
  'flipout': Flipout,
}


@dataclasses.dataclass(frozen=True)
class Blocks:
  """Layers of one variant.

  Attributes:
    kernel_initializer: One of `KERNEL_INITIALIZERS`. Biases start at zero, or
      like kernels with `torch`.
  """

  variant: Deterministic | MCDropout | Flipout
  kernel_initializer: str
  seed: int
  normalization: str = 'none'
  _layers: Iterator[int] = dataclasses.field(
    init=False, default_factory=itertools.count
  )

  def __post_init__(self):
    check = registry.check_choice
    check('normalization', self.normalization, NORMALIZATIONS)
    check('kernel_initializer', self.kernel_initializer, KERNEL_INITIALIZERS)

  @property
  def _keras(self):
    policy = tf_keras.mixed_precision.global_policy()
    return stochastic if policy.compute_dtype != 'float32' else tf_keras.layers

  def _seed(self):
    # Each layer needs another seed, because equal seeds give equal kernels.
    return (self.seed * 1009 + next(self._layers)) % (2**31)

  def _kernel(self, variance=1.0):
    """Returns the kernel initializer, with a factor on the variance."""
    scale, mode, distribution = KERNEL_INITIALIZERS[self.kernel_initializer]
    seed = self._seed()
    if not variance:
      return tf_keras.initializers.Zeros()
    return tf_keras.initializers.VarianceScaling(
      scale * variance, mode, distribution, seed
    )

  def _bias(self, inputs):
    """Returns the initializer of biases for this number of inputs."""
    if self.kernel_initializer != 'torch':
      return tf_keras.initializers.Zeros()
    bound = 1 / math.sqrt(inputs)
    return tf_keras.initializers.RandomUniform(-bound, bound, self._seed())

  def dense(self, units: int, x, *, gain=1.0):
    """A dense layer with bias and without activation; `gain` as in `conv`."""
    settings = {
      'kernel_initializer': self._kernel(gain**2),
      'bias_initializer': self._bias(x.shape[-1]),
    }
    if isinstance(self.variant, Flipout):
      layer = stochastic.DenseFlipout(
        units, initial_scale=self.variant.initial_scale, **settings
      )
    else:
      layer = self._keras.Dense(units, **settings)
    return layer(x)

  def conv(
    self,
    filters,
    size,
    x,
    *,
    strides=1,
    padding='same',
    use_bias=True,
    gain=1.0,
  ):
    """A convolution without activation, with `gain` on the initial scale."""
    settings = {
      'strides': strides,
      'padding': padding,
      'use_bias': use_bias,
      'kernel_initializer': self._kernel(gain**2),
      'bias_initializer': self._bias(size**2 * x.shape[-1]),
    }
    if isinstance(self.variant, Flipout):
      layer = stochastic.Conv2DFlipout(
        filters, size, initial_scale=self.variant.initial_scale, **settings
      )
    else:
      layer = self._keras.Conv2D(filters, size, **settings)
    return layer(x)

  def depthwise(self, size, x, *, strides=1, use_bias=True):
    """A deterministic filter for each channel, without activation."""
    channels = x.shape[-1]
    _, mode, _ = KERNEL_INITIALIZERS[self.kernel_initializer]
    # A filter has one input channel, but Keras counts all channels as inputs:
    # the kernel has shape [size, size, channels, 1].
    fans = channels if mode == 'fan_in' else (channels + 1) / 2
    return self._keras.DepthwiseConv2D(
      size,
      strides=strides,
      padding='same',
      use_bias=use_bias,
      depthwise_initializer=self._kernel(fans),
      bias_initializer=self._bias(size**2),
    )(x)

  def conv_norm(self, filters, size, x, *, strides=1):
    """Convolution, normalization, dropout."""
    bare = self.normalization == 'none'
    return self._normalized(
      self.conv(filters, size, x, strides=strides, use_bias=bare)
    )

  def depthwise_norm(self, size, x, *, strides=1):
    """Depthwise convolution, normalization, dropout."""
    bare = self.normalization == 'none'
    return self._normalized(
      self.depthwise(size, x, strides=strides, use_bias=bare)
    )

  def _normalized(self, x):
    if self.normalization == 'batch':
      x = tf_keras.layers.BatchNormalization(momentum=0.9)(x)
    elif self.normalization == 'group':
      groups = min(8, x.shape[-1])
      # In bfloat16, its moments would be inexact. The activation casts back.
      x = tf_keras.layers.GroupNormalization(groups, dtype='float32')(x)
      x = tf_keras.layers.Activation('linear')(x)
    return self.dropout(x)

  def dropout(self, x):
    """Dropout if the variant is `mc_dropout`, otherwise the input."""
    if not isinstance(self.variant, MCDropout):
      return x
    return stochastic.MCDropout(self.variant.rate)(x)

  def hidden(self, units: int, x, activation: str = 'relu'):
    """A dense layer, an activation and dropout."""
    activate = tf_keras.layers.Activation(activation)
    return self.dropout(activate(self.dense(units, x)))
