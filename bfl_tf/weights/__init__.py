"""A Keras model <-> flat vectors <-> a tfp distribution.

Five arrays say everything about a model's weights:

  loc, scale, factor   the Gaussian posterior of its random weights,
                       N(loc, diag(scale^2) + factor^T factor)
  point                every other trainable
  buffers              what is not trained: batch normalization's statistics

`mean = [loc; point]` is what differences between models are taken over. Which
weights are random is for the method to say:

  layers   those of variational layers, which train their own scale
  all      all trainables of a network without such layers; it trains loc, and
           scale and factor are what a client's method makes of it
"""

from bfl_tf.weights.arrays import (
  distribution,
  marginal_scale,
  natural,
  of_natural,
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
