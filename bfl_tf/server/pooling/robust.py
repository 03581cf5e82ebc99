"""Pooling rules that are robust to a minority of malicious clients.

For deterministic models, they are the published rules. For posteriors, they
apply to the means and to the marginal variances. Krum's distances include the
scales; otherwise an accepted update could have any variance. All rules pool
buffers by their median. All clients have equal weights, because a malicious
client could overstate its size. All updates stay in memory until the end of the
round, and are processed in chunks of the weight vector.

References:
  D. Yin et al. Byzantine-robust distributed learning: towards optimal
  statistical rates. ICML 2018 (median, trimmed mean).
  P. Blanchard et al. Machine learning with adversaries: Byzantine tolerant
  gradient descent. NeurIPS 2017 (multi-Krum).
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import statistics, weights
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Keep, Outcome
from bfl_tf.server.pooling import rules


@dataclasses.dataclass(frozen=True)
class Median(rules.Rule):
  """The median over clients of each mean and of each variance."""

  takes_weights = False
  takes_points = True

  def centre(self, values: np.ndarray) -> np.ndarray:
    """Returns the center `[size]` of sorted values `[num_clients, size]`."""
    return _median(values)

  def trusted(
    self, models: Sequence[weights.Weights]
  ) -> Sequence[weights.Weights]:
    """Returns the models to pool; by default all."""
    return models

  def terms(self, update, weight, broadcast):
    return {'models': Keep(update.model)}

  def step(self, model, sums, slot, ctx):
    """Returns the pooled model.

    `guarded_fraction` is the fraction of clients that are not pooled.
    """
    models = sums['models']
    inliers = self.trusted(models)
    floor = np.float32(self.run.min_scale)
    scale = np.sqrt(_pooled(inliers, _variance, self.centre)).astype(np.float32)
    floored = int(np.sum(scale < floor))
    report = {
      'floored_fraction': floored / max(scale.size, 1),
      'guarded_fraction': 1 - len(inliers) / len(models),
    }
    if any(len(model.factor) for model in models):
      shares = [rules.factor_share(model) for model in inliers]
      report['factor_fraction'] = float(np.mean(shares))
    vectors = {
      name: _pooled(inliers, _vector(name), centre).astype(np.float32)
      for name, centre in {
        'loc': self.centre,
        'point': self.centre,
        'buffers': _median,
      }.items()
    }
    pooled = weights.Weights(scale=np.maximum(scale, floor), **vectors)
    return Outcome(pooled, slot, report)


@dataclasses.dataclass(frozen=True)
class TrimmedMean(Median):
  """The mean of each coordinate without its largest and smallest values."""

  trim: float = setting(
    0.2,
    'Fraction of clients that is removed at each end of the sorted values.',
    ge=0,
    lt=0.5,
  )

  def centre(self, values):
    # One value must remain: 0.49 of four clients would be two at each end.
    aside = min(_share(self.trim, len(values)), (len(values) - 1) // 2)
    return values[aside : len(values) - aside].mean(axis=0)


@dataclasses.dataclass(frozen=True)
class MultiKrum(Median):
  """The mean of the clients that are nearest to their neighbors.

  Notation: n clients, f of them possibly malicious. A client's score is the sum
  of squared distances to the n - f - 2 nearest clients, in means and scales.
  The n - f clients with the lowest scores are averaged. Without factors, this
  is the Wasserstein distance of posteriors, and the published distance of
  deterministic models. With n >= 2 f + 3, colluding clients are not each
  other's only neighbors.
  """

  bad: float = setting(
    0.2, 'Assumed fraction of malicious clients.', ge=0, lt=0.5
  )

  def check(self, facts):
    defect = self._defect(facts.clients_of_a_round)
    facts.need(not defect, defect)

  def _defect(self, num_clients):
    """Returns how malicious clients could support each other, or ''."""
    bad = _share(self.bad, num_clients)
    if num_clients >= 2 * bad + 3:
      return ''
    return (
      f'at least {2 * bad + 3} clients per round for --multi_krum.bad='
      f'{self.bad:g} (here {bad} of {num_clients} clients): add clients, or '
      'lower --multi_krum.bad'
    )

  def centre(self, values):
    return values.mean(axis=0)

  def trusted(self, models):
    bad = _share(self.bad, len(models))
    if not bad:
      return models
    # Some of the round's clients may not have replied.
    if defect := self._defect(len(models)):
      raise ValueError(f'multi_krum needs {defect}.')
    # One of them is the distance of a client to itself, 0.
    near = len(models) - bad - 1
    scores = np.sort(_distances(models), axis=1)[:, :near].sum(axis=1)
    chosen = np.argsort(scores, kind='stable')[: len(models) - bad]
    return [models[i] for i in sorted(chosen)]


ROBUST: dict[str, Any] = {
  'median': Median,
  'trimmed_mean': TrimmedMean,
  'multi_krum': MultiKrum,
}


def _share(share, num_clients) -> int:
  """Returns a number of clients, rounded as in `attacks.malicious_clients`."""
  return round(share * num_clients)


def _pooled(models, read, centre) -> np.ndarray:
  size = read(models[0], slice(None)).size
  pooled = np.empty([size])
  for part in statistics.chunks(size):
    values = np.stack([read(model, part) for model in models])
    pooled[part] = centre(np.sort(values.astype(np.float64), axis=0))
  return pooled


def _median(values):
  return np.median(values, axis=0)


def _vector(name):
  return lambda model, part: getattr(model, name)[part]


def _variance(model, part):
  return model.variance(part)


def _scale(model, part):
  return np.sqrt(model.variance(part))


def _distances(models) -> np.ndarray:
  """Returns `[num_clients, num_clients]` squared distances."""
  squares = np.zeros([len(models)] * 2)
  for read in (_vector('loc'), _vector('point'), _scale):
    for part in statistics.chunks(read(models[0], slice(None)).size):
      values = np.stack([read(model, part) for model in models])
      for i, value in enumerate(values.astype(np.float64)):
        squares[i] += np.square(values - value).sum(axis=1)
  return squares
