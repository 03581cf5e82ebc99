"""The exact product of Gaussians with diagonal plus low-rank covariance.

Notation (FL-SWAG, alg. 3), client k of b, r_k the rank of its factor:
  Sigma_k = S_k + F_k^T F_k      S_k diagonal, F_k [r_k, P]
  Sigma = (sum_k Sigma_k^-1)^-1, mu = Sigma sum_k Sigma_k^-1 mu_k

By Woodbury, each precision is S_k^-1 minus a matrix of rank r_k. Their sum is
A = sum_k S_k^-1 minus a matrix of rank R = sum_k r_k, so Sigma is also diagonal
plus low rank:

  Sigma = A^-1 + A^-1 G^T B^-1 G A^-1     G = [F_k S_k^-1], [R, P]
  mu = c + A^-1 G^T B^-1 h                c = A^-1 sum_k S_k^-1 mu_k
  B_kl = [k = l] (I + F_k S_k^-1 F_k^T) - G_k A^-1 G_l^T
  h_k = G_k (c - mu_k)

B is the joint precision of the clients' latent coordinates; its eigenvalues are
at least 1. They stay near 1 in directions that the clients' factors share, and
grow with the squared ratio of factor to scale in others. If their spread costs
more than `_MOST_LOST` of float64's accuracy, the product raises an error.
Diagonal blocks of B contain S_k^-1 - S_k^-2 A^-1. Its computation avoids this
difference, so that a single client's posterior does not change. Time is
O(P R^2), without any P x P matrix. If R is at least P, the precisions are
summed as P x P matrices, and the product has rank P. Sums are in float64.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method for the sake of calibration
  and privacy protection. 2022, section 5. (Its code drops the low rank.)
"""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
from scipy import linalg

from bfl_tf import parts, statistics, weights
from bfl_tf.declare.settings import setting
from bfl_tf.server.pooling import rules

_FLOAT_BYTES = 4
_GIB = 2.0**30
# Largest accepted relative error of a covariance by rounding.
_MOST_LOST = 1e-3


class Moments(NamedTuple):
  """A product N(mean, diag(variance) + factor^T factor), float64."""

  mean: np.ndarray
  variance: np.ndarray
  factor: np.ndarray


@dataclasses.dataclass(frozen=True)
class Product(rules.Conflation):
  """The normalized product of posteriors; conflation for diagonal ones."""

  max_memory: float = setting(
    8.0,
    'Maximum memory in GiB for the factors of the clients and of '
    'their product.',
    gt=0,
  )

  def check(self, facts):
    if not facts.model:
      return
    rank, size = facts.model.factor.shape
    rows = facts.clients_of_a_round * rank
    # The product's factor has as many rows as all clients' factors together.
    rows += min(rows, size)
    needed = rows * size * _FLOAT_BYTES / _GIB
    facts.need(
      needed <= self.max_memory,
      f'{needed:.3g} GiB for {facts.clients_of_a_round} factors of {rank} x '
      f'{size} and their product: raise --product.max_memory={self.max_memory}',
    )

  def terms(self, update, weight, broadcast):
    model = update.model
    if not len(model.factor):
      return super().terms(update, weight, broadcast)
    diagonal = update._replace(model=model._replace(factor=model.factor[:0]))
    return {
      **super().terms(diagonal, weight, broadcast),
      'factor_share': update.num_examples * rules.factor_share(model),
      'models': parts.Keep(model),
    }

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, slot, ctx)
    if 'models' not in sums:
      return outcome
    shift, precision = sums['summands']
    if sum(len(each.factor) for each in sums['models']) >= shift.size:
      pooled = dense(sums['models'], shift, precision, outcome.model)
      return outcome._replace(model=pooled)
    moments = completed(sums['models'], shift, precision)
    pooled = outcome.model._replace(
      loc=moments.mean.astype(np.float32), factor=moments.factor
    )
    return outcome._replace(model=pooled)


def completed(
  models: Sequence[weights.Weights],
  shift: np.ndarray,
  precision: np.ndarray,
  dtype: type = np.float32,
) -> Moments:
  """Adds the contribution of the factors to the product of the diagonals.

  Args:
    shift: `[num_loc]` float64, S_k^-1 mu_k summed over all clients.
    precision: `[num_loc]` float64, A.
  """
  ends = np.cumsum([len(model.factor) for model in models])
  blocks = [slice(e - len(m.factor), e) for e, m in zip(ends, models)]
  matrix, latent = np.eye(ends[-1]), np.zeros(ends[-1])
  for part in statistics.chunks(precision.size):
    rows, total = _rows(models, part), precision[part]
    between = (rows / total) @ rows.T
    for model, block in zip(models, blocks):
      own = _precision(model, part)
      within = (rows[block] * ((total - own) / (own * total))) @ rows[block].T
      between[block, block] = -within
      distance = shift[part] / total - model.loc[part].astype(np.float64)
      latent[block] += rows[block] @ distance
    matrix -= between
  # With a unit diagonal, because a single large factor loses no digits.
  diagonal = np.sqrt(np.diag(matrix))
  values = np.linalg.eigvalsh(matrix / np.outer(diagonal, diagonal))
  if not values[-1] * np.finfo(float).eps <= _MOST_LOST * values[0]:
    ratio = max(np.abs(m.factor / m.scale).max() for m in models)
    raise ValueError(
      'the product of the factors is not accurate in float64: their variance '
      f'reaches {ratio:.2g} times that of the diagonal. Use larger scales.'
    )
  cholesky = np.linalg.cholesky(matrix)
  latent = linalg.solve_triangular(cholesky, latent, lower=True)
  mean = shift / precision
  factor: np.ndarray = np.empty([ends[-1], shift.size], dtype)
  for part in statistics.chunks(precision.size):
    rows = _rows(models, part) / precision[part]
    rows = linalg.solve_triangular(cholesky, rows, lower=True)
    mean[part] += latent @ rows
    factor[:, part] = rows
  return Moments(mean, 1.0 / precision, factor)


def dense(
  models: Sequence[weights.Weights],
  shift: np.ndarray,
  precision: np.ndarray,
  like: weights.Weights,
) -> weights.Weights:
  """Returns `like` with the product, whose factor has rank `num_loc`.

  Arguments as in `completed`.
  """
  total, shift = np.diag(precision), shift.copy()
  for model in models:
    factor, own = model.factor.astype(np.float64), _precision(model, ...)
    more = np.linalg.inv(np.diag(1.0 / own) + factor.T @ factor) - np.diag(own)
    total += more
    shift += more @ model.loc
  pooled = parts.numpy(weights.of_precision(total, like))
  mean = np.linalg.solve(total, shift)
  return pooled._replace(loc=mean.astype(np.float32))


def _precision(model, part):
  return 1.0 / np.square(model.scale[part], dtype=np.float64)


def _rows(models, part):
  return np.concatenate(
    [
      model.factor[:, part].astype(np.float64) * _precision(model, part)
      for model in models
    ]
  )
