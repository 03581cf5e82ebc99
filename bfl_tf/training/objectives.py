"""The negative evidence lower bound of a client, per example.

Notation (pooling paper, Eq. 6): mean over the batch of -log p(y | x, theta)
plus T KL[q(theta) || p(theta)] / N_k, N_k the client's own number of examples.
Beyond the paper: N_k may be N, the examples of all clients, T, the temperature,
other than 1, and the KL written as others write it (docs/prior.md).
"""

from typing import NamedTuple

import tensorflow as tf


class Prior(NamedTuple):
  """N(loc, scale^2) per variational weight: `[num_loc]` or scalars."""

  loc: tf.Tensor
  scale: tf.Tensor


def negative_log_likelihood(logits, labels) -> tf.Tensor:
  """Returns `[batch]` cross entropies in nats.

  Args:
    logits: `[batch, num_classes]`.
    labels: integer classes `[batch]`, or probabilities `[batch, num_classes]`.
  """
  if labels.dtype.is_floating:
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits)
  return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def divergence(
  loc: tf.Tensor,
  scale: tf.Tensor,
  prior: Prior,
  shares: tf.Tensor | None = None,
) -> tf.Tensor:
  """Returns KL[N(loc, scale^2) || prior] in nats, summed over the weights.

  Args:
    loc: `[num_loc]`.
    scale: `[num_loc]`, standard deviations.
    prior: of each weight.
    shares: `[num_loc]`, factors on the weights' divergences; None for 1.
  """
  # Multiplied and squared by name: a division or a power costs ten times that.
  inverse = 1.0 / prior.scale
  ratio, distance = scale * inverse, (loc - prior.loc) * inverse
  each = 0.5 * (tf.square(ratio) + tf.square(distance) - 1.0)
  each -= tf.math.log(ratio)
  return tf.reduce_sum(each if shares is None else each * shares)
