"""Log posterior of a Keras model as a function of one flat vector.

Notation: log p(w | D) = sum_j log p(y_j | x_j, w) - |w|^2 / (2 s^2) + const,
s the standard deviation of the prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bfl_tf import weights
from bfl_tf.startup import tf, tf_keras


def log_posterior(
  model: tf_keras.Model, x: np.ndarray, y: np.ndarray, prior_scale: float
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns the log density, up to a constant, in nats.

  Args:
    model: Deterministic model from `x` to logits; its weights are overwritten.
    x: Inputs of the model, `[num_examples, ...]`.
    y: Integer classes `[num_examples]`.
    prior_scale: s.

  Returns:
    A differentiable function of `[num_trainable]`, also for graphs. It changes
    the model's variables, so evaluations must not run in parallel.
  """
  variables = weights.Variables.of(model)
  x, y = tf.constant(x), tf.constant(y)

  def evaluate(w):
    weights.assign(variables.point, w)
    with tf.GradientTape() as tape:
      logits = model(x, training=False)
      nll = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
      fit = -tf.reduce_sum(nll)
    slope = weights.flatten(tape.gradient(fit, variables.point))
    square = tf.reduce_sum(tf.square(w))
    return fit - square / (2 * prior_scale**2), slope - w / prior_scale**2

  @tf.custom_gradient
  def density(w):
    value, slope = evaluate(w)

    def gradient(upstream, variables=()):
      # The model's variables have no gradient, only `w` has.
      return upstream * slope, [None] * len(variables)

    return value, gradient

  return density


def in_subspace(
  density: Callable, origin: np.ndarray, directions: np.ndarray
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns the density over coordinates `z` of `origin + directions^T z`.

  Args:
    density: Log density over `[num_trainable]`.
    origin: `[num_trainable]`.
    directions: `[rank, num_trainable]`; unit vectors of the coordinates.
  """

  def sliced(z):
    return density(origin + tf.linalg.matvec(directions, z, transpose_a=True))

  return sliced
