"""Moments of predictive distributions, streamed over Monte Carlo samples.

Welford's algorithm updates means and variances, because differences of squares
would lose small variances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bfl_tf.startup import tf


class Moments(NamedTuple):
  """Moments of the labels for one Monte Carlo sample, in the graph.

  Attributes:
    mean: Class probabilities `[batch, num_classes]`, or means `[batch, 1]`.
    variance: `[batch]`, variance of the label, summed over classes.
    entropy: `[batch]`, entropy of the label in nats.
  """

  mean: tf.Tensor
  variance: tf.Tensor
  entropy: tf.Tensor


class Predictive(NamedTuple):
  """Predictive mean per example, and the two parts of its variance.

  Attributes:
    mean: `[num_examples, num_classes]`, mean over samples; for a numeric
      label, its predictive mean `[num_examples, 1]`.
    aleatoric: `[num_examples]`, trace of the expected covariance.
    epistemic: `[num_examples]`, trace of the covariance over samples.
    expected_entropy: `[num_examples]`, mean entropy of the samples in nats.
  """

  mean: np.ndarray
  aleatoric: np.ndarray
  epistemic: np.ndarray
  expected_entropy: np.ndarray


class Welford(NamedTuple):
  """Running moments over samples, in the graph.

  Attributes:
    mean: `[batch, num_classes]`, mean over samples.
    aleatoric: `[batch]`, sum over samples of the label's variance.
    scatter: `[batch]`, sum over samples of sum_c (p - mean)^2.
    entropy: `[batch]`, sum over samples of the label's entropy.
  """

  count: tf.Tensor
  mean: tf.Tensor
  aleatoric: tf.Tensor
  scatter: tf.Tensor
  entropy: tf.Tensor

  @classmethod
  def zeros(cls, shape) -> Welford:
    """Returns the moments before the first sample."""
    rows = tf.zeros(shape[:1])
    return cls(tf.constant(0.0), tf.zeros(shape), rows, rows, rows)

  def add(self, sample: Moments) -> Welford:
    """Returns the moments with another sample."""
    count = self.count + 1.0
    delta = sample.mean - self.mean
    mean = self.mean + delta / count
    return Welford(
      count,
      mean,
      self.aleatoric + sample.variance,
      self.scatter + tf.reduce_sum(delta * (sample.mean - mean), -1),
      self.entropy + sample.entropy,
    )

  def predictive(self) -> Predictive:
    """Returns the predictive distribution of the samples."""
    sums = self.aleatoric, self.scatter, self.entropy
    return Predictive(self.mean, *(total / self.count for total in sums))
