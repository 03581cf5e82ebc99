"""The building blocks of a network in its three variants.

A network is written once over `Blocks`; the variant decides what a
convolution, a dense layer and the place for dropout are:

  deterministic   plain Keras layers
  mc_dropout      dropout after each convolution's normalization and each
                  hidden dense layer, on at inference
  flipout         every kernel and every bias that exists is variational;
                  the normalization's gamma and beta are points
"""

from collections.abc import Iterator
import dataclasses
import itertools

import tf_keras

from bfl_tf.models import layers as stochastic

VARIANTS = ('deterministic', 'mc_dropout', 'flipout')
NORMALIZATIONS = ('batch', 'group', 'none')


@dataclasses.dataclass(frozen=True)
class Blocks:
  """Layers of one variant; kernels start He-normal, biases at zero.

  Attributes:
    variant: one of `VARIANTS`.
    normalization: one of `NORMALIZATIONS`.
    initial_scale: standard deviation that a variational weight starts with.
    dropout_rate: for `mc_dropout`.
    seed: the initial weights depend on it alone.
  """

  variant: str
  normalization: str
  initial_scale: float
  dropout_rate: float
  seed: int
  _layers: Iterator[int] = dataclasses.field(
    init=False, default_factory=itertools.count
  )

  def __post_init__(self):
    for name, known in (
      ('variant', VARIANTS),
      ('normalization', NORMALIZATIONS),
    ):
      if getattr(self, name) not in known:
        raise ValueError(
          f'--{name}={getattr(self, name)} is unknown. Choose one of '
          f'{", ".join(known)}.'
        )
    if not self.initial_scale > 0:
      raise ValueError(
        f'initial_scale must be positive, got {self.initial_scale!r}.'
      )
    if not 0 <= self.dropout_rate < 1:
      raise ValueError(
        f'dropout_rate must be in [0, 1), got {self.dropout_rate!r}.'
      )

  def _kernel(self):
    # A seed of its own for each layer: equal seeds give equal kernels.
    seed = (self.seed * 1009 + next(self._layers)) % (2**31)
    return tf_keras.initializers.HeNormal(seed=seed)

  def dense(self, units: int, x):
    """A dense layer with bias, no activation."""
    if self.variant == 'flipout':
      layer = stochastic.DenseFlipout(
        units,
        kernel_initializer=self._kernel(),
        initial_scale=self.initial_scale,
      )
    else:
      layer = tf_keras.layers.Dense(units, kernel_initializer=self._kernel())
    return layer(x)

  def conv(self, filters, size, x, *, strides=1, padding='same', use_bias=True):
    """A convolution, no activation."""
    settings = {'strides': strides, 'padding': padding, 'use_bias': use_bias}
    if self.variant == 'flipout':
      layer = stochastic.Conv2DFlipout(
        filters,
        size,
        kernel_initializer=self._kernel(),
        initial_scale=self.initial_scale,
        **settings,
      )
    else:
      layer = tf_keras.layers.Conv2D(
        filters, size, kernel_initializer=self._kernel(), **settings
      )
    return layer(x)

  def conv_norm(self, filters, size, x, *, strides=1):
    """Convolution, normalization, dropout: the convolution of a ResNet."""
    bare = self.normalization == 'none'
    x = self.conv(filters, size, x, strides=strides, use_bias=bare)
    if self.normalization == 'batch':
      x = tf_keras.layers.BatchNormalization(momentum=0.9)(x)
    elif self.normalization == 'group':
      x = tf_keras.layers.GroupNormalization(groups=min(8, filters))(x)
    return self.dropout(x)

  def dropout(self, x):
    """The place after a hidden layer where `mc_dropout` drops."""
    if self.variant != 'mc_dropout':
      return x
    return stochastic.MCDropout(self.dropout_rate)(x)

  def hidden(self, units: int, x):
    """A dense layer, ReLU and dropout."""
    return self.dropout(tf_keras.layers.ReLU()(self.dense(units, x)))
