"""The building blocks of a network in its three variants.

A network is written once over `Blocks`; the variant decides what a
convolution, a dense layer and the place for dropout are:

  deterministic   plain Keras layers
  mc_dropout      dropout after each convolution's normalization and each
                  hidden dense layer, on at inference
  flipout         every kernel and every bias that exists is variational, but
                  for depthwise convolutions: TFP has no Flipout for them, and
                  they stay points, like the normalization's gamma and beta
"""

from collections.abc import Iterator
import dataclasses
import functools
import itertools
import math
from typing import Annotated, Any

import tf_keras

from bfl_tf import registry
from bfl_tf.models import layers as stochastic
from bfl_tf.settings import Setting

NORMALIZATIONS = ('batch', 'group', 'none')
KERNEL_INITIALIZERS: dict[str, Any] = {
  'he_normal': tf_keras.initializers.HeNormal,
  'glorot_uniform': tf_keras.initializers.GlorotUniform,
  # U(-b, b) with b = 1 / sqrt(inputs), as biases start there too.
  'torch': functools.partial(
    tf_keras.initializers.VarianceScaling, 1 / 3, 'fan_in', 'uniform'
  ),
}


@dataclasses.dataclass(frozen=True)
class Deterministic:
  """Plain Keras layers."""


@dataclasses.dataclass(frozen=True)
class MCDropout:
  """Gal & Ghahramani 2016."""

  rate: Annotated[float, Setting('Of units dropped.', least=0, below=1)] = 0.2


@dataclasses.dataclass(frozen=True)
class Flipout:
  """Gaussian weights with Flipout (Wen et al. 2018)."""

  initial_scale: Annotated[
    float,
    Setting('Initial standard deviation of the weights.', above=0),
  ] = 0.05


VARIANTS: dict[str, Any] = {
  'deterministic': Deterministic,
  'mc_dropout': MCDropout,
  'flipout': Flipout,
}


@dataclasses.dataclass(frozen=True)
class Blocks:
  """Layers of one variant; biases start at zero, under `torch` as kernels.

  Attributes:
    variant: of one of `VARIANTS`.
    kernel_initializer: one of `KERNEL_INITIALIZERS`.
    seed: the initial weights depend on it alone.
    normalization: one of `NORMALIZATIONS`; a network's own setting.
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

  def _seed(self):
    # One of its own for each layer: equal seeds give equal kernels.
    return (self.seed * 1009 + next(self._layers)) % (2**31)

  def _kernel(self, gain=1.0):
    kernel = KERNEL_INITIALIZERS[self.kernel_initializer](seed=self._seed())
    if gain == 1.0:
      return kernel
    return _scaled(kernel, gain**2) if gain else tf_keras.initializers.Zeros()

  def _bias(self, inputs):
    """The initializer of biases whose filters or units have such inputs."""
    if self.kernel_initializer != 'torch':
      return tf_keras.initializers.Zeros()
    bound = 1 / math.sqrt(inputs)
    return tf_keras.initializers.RandomUniform(-bound, bound, self._seed())

  def dense(self, units: int, x, *, gain=1.0):
    """A dense layer with bias, no activation; `gain` as of `conv`."""
    settings = {
      'kernel_initializer': self._kernel(gain),
      'bias_initializer': self._bias(x.shape[-1]),
    }
    if isinstance(self.variant, Flipout):
      layer = stochastic.DenseFlipout(
        units, initial_scale=self.variant.initial_scale, **settings
      )
    else:
      layer = tf_keras.layers.Dense(units, **settings)
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
    """A convolution, no activation; its kernel starts at `gain` times the
    standard scale."""
    settings = {
      'strides': strides,
      'padding': padding,
      'use_bias': use_bias,
      'kernel_initializer': self._kernel(gain),
      'bias_initializer': self._bias(size**2 * x.shape[-1]),
    }
    if isinstance(self.variant, Flipout):
      layer = stochastic.Conv2DFlipout(
        filters, size, initial_scale=self.variant.initial_scale, **settings
      )
    else:
      layer = tf_keras.layers.Conv2D(filters, size, **settings)
    return layer(x)

  def depthwise(self, size, x, *, strides=1, use_bias=True):
    """A filter for each channel, no activation; points in any variant."""
    kernel, channels = self._kernel(), x.shape[-1]
    # A filter sees one channel and feeds one. Keras counts all of them among
    # its inputs: [size, size, channels, 1] is the shape of its kernel.
    fans = channels if kernel.mode == 'fan_in' else (channels + 1) / 2
    return tf_keras.layers.DepthwiseConv2D(
      size,
      strides=strides,
      padding='same',
      use_bias=use_bias,
      depthwise_initializer=_scaled(kernel, fans),
      bias_initializer=self._bias(size**2),
    )(x)

  def conv_norm(self, filters, size, x, *, strides=1):
    """Convolution, normalization, dropout: the convolution of a ResNet."""
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
      x = tf_keras.layers.GroupNormalization(groups=groups)(x)
    return self.dropout(x)

  def dropout(self, x):
    """The place after a hidden layer where `mc_dropout` drops."""
    if not isinstance(self.variant, MCDropout):
      return x
    return stochastic.MCDropout(self.variant.rate)(x)

  def hidden(self, units: int, x):
    """A dense layer, ReLU and dropout."""
    return self.dropout(tf_keras.layers.ReLU()(self.dense(units, x)))


def _scaled(kernel, factor):
  """The initializer of weights of `factor` times the variance."""
  # By its numbers: HeNormal would not save the scale.
  return tf_keras.initializers.VarianceScaling(
    kernel.scale * factor, kernel.mode, kernel.distribution, kernel.seed
  )
