"""The arrays of one model, and the distribution that they represent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bfl_tf.startup import tf, tfd


class _Arrays(NamedTuple):
  loc: np.ndarray
  scale: np.ndarray
  point: np.ndarray
  buffers: np.ndarray
  factor: np.ndarray


# Scale of a posterior without uncertainty. It is not 0, because rules and
# divergences divide by it.
POINT_SCALE = 1e-6


class Weights(_Arrays):
  """The weights of one model, float32 arrays or tensors.

  Attributes:
    loc: `[num_loc]`, means of the random weights.
    scale: `[num_loc]`, standard deviations without the factor.
    point: `[num_points]`, deterministic trainable weights.
    buffers: `[num_buffers]`, moving statistics.
    factor: `[rank, num_loc]`, low-rank factor; by default of rank 0.
  """

  __slots__ = ()

  def __new__(cls, loc, scale, point, buffers, factor=None):
    if factor is None:
      zeros = tf.zeros if tf.is_tensor(loc) else np.zeros
      factor = zeros([0, loc.shape[0]], loc.dtype)
    return super().__new__(cls, loc, scale, point, buffers, factor)

  @property
  def mean(self) -> Any:
    """`[num_loc + num_points]`, means of all trainable weights."""
    join = tf.concat if tf.is_tensor(self.loc) else np.concatenate
    return join([self.loc, self.point], 0)

  @property
  def num_bytes(self) -> int:
    """Size in a message, in bytes."""
    return sum(array.nbytes for array in self)

  @property
  def values(self) -> np.ndarray:
    """`[loc; point; buffers]`, the support of distributions over models."""
    filled = [v for v in (self.loc, self.point, self.buffers) if v.size]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)

  def variance(self, part: slice = slice(None)) -> np.ndarray:
    """Returns marginal variances of a part of `loc`, float64.

    With rank 0 they are exactly scale^2.
    """
    low_rank = np.square(self.factor[:, part], dtype=np.float64).sum(0)
    return np.square(self.scale[part], dtype=np.float64) + low_rank

  def replace_mean(self, mean: Any) -> Weights:
    """Returns these weights with another `mean`, rounded to float32 once."""
    if tf.is_tensor(mean):
      loc, point = tf.split(mean, [tf.size(self.loc), tf.size(self.point)])
    else:
      mean = np.asarray(mean, np.float32)
      loc, point = np.split(mean, [self.loc.shape[0]])
    return self._replace(loc=loc, point=point)

  def replace_values(self, values: np.ndarray) -> Weights:
    """Returns these weights with other `values`, rounded to float32 once."""
    mean, buffers = np.split(values, [self.loc.size + self.point.size])
    return self.replace_mean(mean)._replace(
      buffers=np.asarray(buffers, np.float32)
    )

  def at_a_point(self) -> Weights:
    """Returns these weights with almost no variance, as for a sample."""
    return self._replace(
      scale=np.full_like(self.loc, POINT_SCALE), factor=self.factor[:0]
    )


def distribution(weights: Weights) -> tfd.Distribution:
  """Returns the posterior over the random weights.

  Returns:
    `MultivariateNormalDiag` over `R^num_loc`, or with a factor
    `MultivariateNormalDiagPlusLowRankCovariance`. For a deterministic model,
    `VectorDeterministic` over all trainable weights.
  """
  if not weights.loc.size:
    return tfd.VectorDeterministic(weights.point)
  if not len(weights.factor):
    return tfd.MultivariateNormalDiag(weights.loc, weights.scale)
  return tfd.MultivariateNormalDiagPlusLowRankCovariance(
    weights.loc, np.square(weights.scale), weights.factor.T
  )


def natural(model: Weights) -> tf.Tensor:
  """Returns the natural parameters of the diagonal posterior, float64.

  `[2, num_loc]`: precision times mean, precision.
  """
  loc, scale = (tf.cast(v, tf.float64) for v in (model.loc, model.scale))
  precision = 1.0 / tf.square(scale)
  return tf.stack([precision * loc, precision])


def of_natural(eta: tf.Tensor, like: Weights) -> Weights:
  """Returns `like` with the posterior of `eta`, rounded to float32."""
  shift, precision = tf.unstack(eta)
  return like._replace(
    loc=tf.cast(shift / precision, tf.float32),
    scale=tf.cast(tf.math.rsqrt(precision), tf.float32),
  )


def of_precision(precision: Any, like: Weights) -> Weights:
  """Returns `like` with the covariance `precision^-1`, in float32.

  Half of the smallest variance of any direction is the square of the scale, and
  the factor has full rank. Its rows are eigenvectors: rounding then changes the
  density least.

  Args:
    precision: `[num_loc, num_loc]` float64, positive definite.
  """
  values, vectors = tf.linalg.eigh(precision)
  least = 0.5 / values[-1]
  factor = tf.transpose(vectors * tf.sqrt(1.0 / values - least))
  return like._replace(
    scale=tf.fill(tf.shape(like.loc), tf.cast(tf.sqrt(least), tf.float32)),
    factor=tf.cast(factor, tf.float32),
  )


def marginal_scale(model: Weights) -> tf.Tensor:
  """Returns the root of `Weights.variance`, float32; also works in a graph."""
  low_rank = tf.reduce_sum(tf.square(model.factor), 0)
  # The square of a float32 is exact in float64, and so is its root.
  variance = tf.square(tf.cast(model.scale, tf.float64))
  return tf.cast(tf.sqrt(variance + tf.cast(low_rank, tf.float64)), tf.float32)
