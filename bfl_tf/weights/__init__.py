"""Conversion between Keras models, flat vectors and TFP distributions.

Five arrays contain the weights of a model:

  loc, scale, factor   Gaussian posterior of the random weights,
                       N(loc, diag(scale^2) + factor^T factor)
  point                deterministic trainable weights
  buffers              non-trainable weights: batch-normalization statistics

Updates of a model are differences of `mean = [loc; point]`. The scope of the
posterior depends on the method:

  layers   weights of variational layers, which train their scales
  all      all trainable weights of a network without variational layers; a
           client part or optimizer determines scale and factor
"""

from bfl_tf.weights.arrays import (
  distribution,
  marginal_scale,
  natural,
  of_natural,
  of_precision,
  POINT_SCALE,
  Weights,
)
from bfl_tf.weights.layout import (
  assign,
  flatten,
  inverse_softplus,
  Layout,
  read,
  unflatten,
  Variables,
  write,
)
