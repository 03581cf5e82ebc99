"""Prediction sets and intervals with guaranteed coverage: split conformal.

A set contains the classes whose score is at most a threshold. Each site sends
only counts of the scores of its held-out labels in fine bins. The server adds
up the counts. The threshold is the upper edge of the bin of the score with rank
ceil((n + 1) (1 - alpha)). A set contains the label with probability at least
1 - alpha, if the example is exchangeable with the held-out examples.

The scores are increasing functions of the published scores, so the sets are the
same. The scale is logarithmic in the remaining probability, because bins must
separate label probabilities as small as 1e-9 of overconfident models.

The most probable class always has score 0, so no set is empty. If accuracy
exceeds 1 - alpha, coverage does, too.

For numbers, the score is an increasing function of r = |label - mean| /
deviation, the residual in predictive standard deviations [4, section 2.3]. It
has the same logarithmic scale, where 1 / (1 + r) replaces the probability. The
sets are intervals around the predictive mean.

#### References

[1]: Mauricio Sadinle, Jing Lei, Larry Wasserman. Least Ambiguous Set-Valued
     Classifiers with Bounded Error Levels. _JASA_, 2019.
[2]: Yaniv Romano, Matteo Sesia, Emmanuel Candes. Classification with Valid and
     Adaptive Coverage. _NeurIPS_, 2020.
[3]: Anastasios Angelopoulos et al. Uncertainty Sets for Image Classifiers using
     Conformal Prediction. _ICLR_, 2021.
[4]: Anastasios Angelopoulos and Stephen Bates. A Gentle Introduction to
     Conformal Prediction. 2021.
"""

import fractions
import math

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive
from bfl_tf.metrics.scores import MIN_PROBABILITY

NUM_BINS = 4000
# k_reg and lambda of [3].
_FREE, _PENALTY = 5, 0.01
# Length of the logarithmic scale, in nats.
_RANGE = -math.log(MIN_PROBABILITY)


def _scale(tail):
  """Maps 1 to 0 and `MIN_PROBABILITY` to 1, with high resolution at both."""
  floor = MIN_PROBABILITY
  return np.sqrt(np.log(np.clip(tail, floor, 1)) / np.log(floor))


def _tails(falling):
  """Returns the total probability of each class and all later ones."""
  tails = np.cumsum(falling[:, ::-1], -1)[:, ::-1]
  return tails / tails[:, :1]


def _least_ambiguous(falling):
  scores = _scale(falling)
  scores[:, 0] = 0
  return scores


def _regularised(falling):
  rank = np.arange(1, falling.shape[-1] + 1)
  beyond = np.maximum(0, rank - _FREE)
  # The published score minus 1. Scores of an overconfident model are just below
  # multiples of the penalty, so each multiple needs its own scale.
  excess = _PENALTY * beyond - _tails(falling)
  steps = np.maximum(0, np.ceil(excess / _PENALTY))
  rest = _PENALTY * steps - excess
  above = (steps - 1 + _scale(rest / _PENALTY)) / max(1, beyond[-1])
  return np.where(steps, 1 + np.sqrt(np.maximum(0, above)), _scale(rest)) / 2


# Functions of sorted probabilities: LAC [1], 1 - p; APS [2], the total
# probability of more probable classes; RAPS [3], APS plus a penalty on the
# rank.
SET_SCORES = {
  'lac': _least_ambiguous,
  'aps': lambda falling: _scale(_tails(falling)),
  'raps': _regularised,
}


def set_scores(probs: npt.ArrayLike, score: str = 'lac') -> np.ndarray:
  """Returns `[num_examples, num_classes]` scores in [0, 1]."""
  p = predictive.probabilities(probs)
  order = np.argsort(-p, axis=-1, kind='stable')
  ranked = SET_SCORES[score](np.take_along_axis(p, order, -1))
  scores = np.empty_like(ranked)
  np.put_along_axis(scores, order, np.clip(ranked, 0, 1), -1)
  return scores


def score_counts(
  probs: npt.ArrayLike, labels: npt.ArrayLike, score: str = 'lac'
) -> np.ndarray:
  """Returns counts of the labels' scores, `[NUM_BINS]` integers.

  The bins have equal width over [0, 1]; each includes its upper edge.
  """
  p, labels = predictive.checked(probs, labels)
  return _counts(set_scores(p, score)[np.arange(labels.size), labels])


def residual_counts(residual: npt.ArrayLike) -> np.ndarray:
  """Returns counts of the scores of numeric labels, as `score_counts`.

  A residual is the label minus the predictive mean, in standard deviations.
  """
  size = np.abs(np.asarray(residual, np.float64))
  return _counts(np.sqrt(np.minimum(np.log1p(size) / _RANGE, 1)))


def interval_half_width(limit: float) -> float:
  """Returns the half width of intervals, in predictive deviations."""
  return math.expm1(limit**2 * _RANGE) if limit < 1 else math.inf


def smallest_probability(limit: float) -> float:
  """Returns the smallest probability of a class in a set of score `lac`."""
  return math.exp(-(limit**2) * _RANGE)


def _counts(scores):
  edges = np.arange(NUM_BINS + 1) / NUM_BINS
  bins = np.searchsorted(edges, scores, side='left') - 1
  return np.bincount(np.clip(bins, 0, NUM_BINS - 1), minlength=NUM_BINS)


def threshold(counts: npt.ArrayLike, alpha: float) -> float:
  """Returns the largest score of a class in the set.

  It is in [0, 1]; 1, which includes every class, if there are too few scores.

  Args:
    counts: `[num_bins]`, number of scores per bin over all sites.
    alpha: Probability in (0, 1) that a set misses the label.
  """
  counts = np.asarray(counts)
  total = int(counts.sum())
  # A float such as 1 - 0.9 stands for the fraction 1/10.
  exact = fractions.Fraction(alpha).limit_denominator(10**9)
  rank = math.ceil((total + 1) * (1 - exact))
  if rank > total:
    return 1.0
  place = int(np.searchsorted(np.cumsum(counts), rank))
  return (place + 1) / counts.size
