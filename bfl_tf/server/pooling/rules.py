"""Rules that pool the clients' Gaussian posteriors into one.

Notation (pooling paper, section 2.5), elementwise over the weights:
  m_k, v_k   mean and marginal variance of client k's posterior
  w_k        client k's weight; W the sum of the weights
  m_0, v_0   mean and variance of the broadcast posterior (the reference)

Posteriors with a factor are pooled by their marginals, and the result has no
factor. `factor_fraction` reports the variance in the clients' factors.

A rule defines summands, which are summed over clients, and the moments that
follow from the sums. Deterministic weights and batch-norm statistics are
averaged with the clients' weights, or with their sizes if the rule takes no
weights.

References:
  J. Fischer et al. Federated Bayesian deep learning: the application of
  statistical aggregation methods to Bayesian models. arXiv:2403.15263.
  N. Jamoussi et al. BA-BFL: barycentric aggregation for Bayesian federated
  learning. arXiv:2412.11646.
  A. Ozer et al. How to combine variational Bayesian networks in federated
  learning. arXiv:2206.10897.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import statistics, weights
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Outcome, Pool


class Gaussian(NamedTuple):
  """Means and variances, float64, of a chunk of the weight vector."""

  mean: np.ndarray
  variance: np.ndarray


class Totals(NamedTuple):
  """Sum and maximum of the clients' weights."""

  weight: float
  max_weight: float


@dataclasses.dataclass(frozen=True)
class Rule(Pool):
  """Base of elementwise pooling rules.

  A rule implements `summands` and `moments`. This class streams the updates in
  chunks of the weights, averages deterministic weights and buffers, and applies
  the lower bound on scales.
  """

  def summands(self, q: Gaussian, w: float, q0: Gaussian) -> tuple:
    """Returns arrays of the size of `q.mean`, to be summed over clients."""
    raise NotImplementedError('summands(q, w, q0)')

  def moments(
    self, sums: np.ndarray, totals: Totals, q0: Gaussian
  ) -> tuple[Gaussian, int]:
    """Returns the pooled moments and the number of weights kept at `q0`."""
    raise NotImplementedError('moments(sums, totals, q0)')

  def terms(self, update, weight, broadcast):
    model, size = update.model, update.model.loc.size
    weight = float(weight if self.takes_weights else update.num_examples)
    summands = np.empty([0, size])
    for part in statistics.chunks(size):
      q0, q = _gaussian(broadcast, part), _gaussian(model, part)
      rows = _rows(self.summands(q, weight, q0), q.mean.size)
      if not len(summands):
        summands = np.empty([len(rows), size])
      summands[:, part] = rows
    terms = {
      'summands': summands,
      'point': np.multiply(model.point, weight, dtype=np.float64),
      'buffers': np.multiply(model.buffers, weight, dtype=np.float64),
    }
    if not self.takes_weights:
      terms['examples'] = weight
    if len(model.factor):
      terms['factor_share'] = weight * factor_share(model)
    return terms

  def step(self, model, sums, slot, ctx):
    total = sums['weight' if self.takes_weights else 'examples']
    totals = Totals(float(total), sums['max_weight'])
    size = sums['summands'].shape[-1]
    loc, scale = both = np.empty([2, size], np.float32)
    floored, guarded, floor = 0, 0, np.float32(self.run.min_scale)
    for part in statistics.chunks(size):
      q0 = _gaussian(ctx.broadcast, part)
      q, num_guarded = self.moments(sums['summands'][:, part], totals, q0)
      # With noise for privacy, a variance may be negative.
      deviation = np.sqrt(np.maximum(q.variance, 0.0))
      both[:, part] = _rows((q.mean, deviation), loc[part].size)
      floored += int(np.sum(scale[part] < floor))
      scale[part] = np.maximum(scale[part], floor)
      guarded += num_guarded
    averages = {
      name: (sums[name] / totals.weight).astype(np.float32)
      for name in ('point', 'buffers')
    }
    report = {
      'floored_fraction': floored / max(size, 1),
      'guarded_fraction': guarded / max(size, 1),
    }
    if 'factor_share' in sums:
      report['factor_fraction'] = float(sums['factor_share'] / totals.weight)
    return Outcome(weights.Weights(loc, scale, **averages), slot, report)


class NaiveWeightedAverage(Rule):
  """Eq. 10: the mean of the means, the mean of the variances."""

  takes_points = True

  def summands(self, q, w, q0):
    return w * q.mean, w * q.variance

  def moments(self, sums, totals, q0):
    mean, variance = sums / totals.weight
    return Gaussian(mean, variance), 0


class WeightedSum(Rule):
  """Eq. 11: the distribution of a weighted sum of independent Gaussians."""

  def summands(self, q, w, q0):
    return w * q.mean, w**2 * q.variance

  def moments(self, sums, totals, q0):
    mean, variance = sums[0] / totals.weight, sums[1] / totals.weight**2
    return Gaussian(mean, variance), 0


class LinearPooling(Rule):
  """Eq. 13 and 14: the moments of the mixture of the clients' posteriors.

  This is the barycenter in the forward divergence KL[q_k, q]. The variance of
  the means is summed around m_0 and then shifted to the pooled mean, to avoid
  cancellation of large squares.
  """

  def summands(self, q, w, q0):
    return w * q.mean, w * q.variance, w * (q.mean - q0.mean) ** 2

  def moments(self, sums, totals, q0):
    mean, variance, square = sums / totals.weight
    disagreement = np.maximum(square - (mean - q0.mean) ** 2, 0.0)
    return Gaussian(mean, variance + disagreement), 0


class WassersteinBarycenter(Rule):
  """The barycenter in squared Wasserstein-2 distance (Jamoussi et al.).

  The means and the standard deviations are averaged.
  """

  def summands(self, q, w, q0):
    return w * q.mean, w * np.sqrt(q.variance)

  def moments(self, sums, totals, q0):
    mean, scale = sums / totals.weight
    return Gaussian(mean, np.square(scale)), 0


class LogVarianceAverage(Rule):
  """The mean of the means, the mean of the logarithms of the variances.

  Its name in Ozer et al. is arithmetic aggregation with log variance.
  """

  def summands(self, q, w, q0):
    return w * q.mean, w * np.log(q.variance)

  def moments(self, sums, totals, q0):
    mean, log_variance = sums / totals.weight
    return Gaussian(mean, np.exp(log_variance)), 0


class WeightedConflation(Rule):
  """Eq. 16: the product of the posteriors to the powers w_k / w_max."""

  def summands(self, q, w, q0):
    precision = w / q.variance
    return precision * q.mean, precision

  def moments(self, sums, totals, q0):
    return Gaussian(sums[0] / sums[1], totals.max_weight / sums[1]), 0


class LogLinearPooling(WeightedConflation):
  """Eq. 16 with W for w_max: the weighted geometric mean of the densities.

  This is the barycenter in the reverse divergence KL[q, q_k].
  """

  def moments(self, sums, totals, q0):
    return Gaussian(sums[0] / sums[1], totals.weight / sums[1]), 0


class Conflation(WeightedConflation):
  """Eq. 15: the normalized product of the posteriors."""

  takes_weights = False

  def summands(self, q, w, q0):
    return super().summands(q, 1.0, q0)

  def moments(self, sums, totals, q0):
    return Gaussian(sums[0] / sums[1], 1.0 / sums[1]), 0


@dataclasses.dataclass(frozen=True)
class DistributedWeightConsolidation(Rule):
  """Eq. 17: the product of the posteriors over the prior's (K - 1)-th power.

  As a change of the prior, the precision is 1/v_0 + sum(1/v_k - 1/v_0) and the
  mean m_0 + sum((m_k - m_0) / v_k) / precision. If clients are less certain
  than the prior, the precision may be near zero or negative, and the mean
  diverges. Such weights keep the prior, which is the broadcast, and are
  counted.
  """

  min_precision: float = setting(
    0.25,
    'Smallest accepted precision, relative to that of the prior; '
    '`guarded_fraction` reports how many weights keep the prior.',
    gt=0,
  )

  takes_weights = False

  def check(self, facts):
    facts.need(
      facts.objective.update_prior,
      'clients whose prior is the broadcast posterior, which it divides out: '
      'set --flipout.update_prior, or --client_parts=pvi in place of it',
    )
    facts.need_standard_objective()

  def summands(self, q, w, q0):
    precision = 1.0 / q.variance
    return precision * (q.mean - q0.mean), precision - 1.0 / q0.variance

  def moments(self, sums, totals, q0):
    prior_precision = 1.0 / q0.variance
    precision = prior_precision + sums[1]
    is_guarded = precision < self.min_precision * prior_precision
    precision = np.where(is_guarded, prior_precision, precision)
    shift = np.where(is_guarded, 0.0, sums[0] / precision)
    return Gaussian(q0.mean + shift, 1.0 / precision), int(is_guarded.sum())


ELEMENTWISE: dict[str, Any] = {
  'nwa': NaiveWeightedAverage,
  'ws': WeightedSum,
  'lp': LinearPooling,
  'wasserstein': WassersteinBarycenter,
  'log_variance': LogVarianceAverage,
  'llp': LogLinearPooling,
  'conflation': Conflation,
  'wc': WeightedConflation,
  'dwc': DistributedWeightConsolidation,
}


def _rows(arrays: tuple, size: int) -> np.ndarray:
  """Stacks vectors; rejects other sizes, which would broadcast."""
  if any(np.size(array) != size for array in arrays):
    raise ValueError(f'a rule must return a tuple of arrays of shape ({size},)')
  return np.stack([np.reshape(array, size) for array in arrays])


def _gaussian(model: weights.Weights, part: slice) -> Gaussian:
  return Gaussian(model.loc[part].astype(np.float64), model.variance(part))


def factor_share(model: weights.Weights) -> float:
  """Returns the fraction of a model's summed variances in its factor."""
  factor_variance = total = 0.0
  for part in statistics.chunks(model.loc.size):
    factor_variance += np.square(model.factor[:, part], dtype=np.float64).sum()
    total += model.variance(part).sum()
  return factor_variance / total
