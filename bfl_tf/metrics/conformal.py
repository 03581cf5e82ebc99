"""Prediction sets with guaranteed coverage: split conformal prediction.

A score orders the classes of an example by how late they enter its set. A site
counts the scores of its held-out labels in fine bins and sends only the counts;
counts of sites add up. The threshold is the upper edge of the bin that holds
the score of rank ceil((n + 1) (1 - alpha)). A set then holds the label with
probability at least 1 - alpha, if the example is exchangeable with the held-out
ones.

The scores are increasing functions of the published ones, so the sets are the
same. The scale is logarithmic in the remaining probability: an overconfident
model gives labels probabilities of 1e-9, and bins must still separate them.

The most probable class always has score 0, so no set is empty. Where that class
is the label more often than 1 - alpha, coverage exceeds 1 - alpha.

#### References

[1]: Mauricio Sadinle, Jing Lei, Larry Wasserman. Least Ambiguous Set-Valued
     Classifiers with Bounded Error Levels. _JASA_, 2019.
[2]: Yaniv Romano, Matteo Sesia, Emmanuel Candes. Classification with Valid and
     Adaptive Coverage. _NeurIPS_, 2020.
[3]: Anastasios Angelopoulos et al. Uncertainty Sets for Image Classifiers using
     Conformal Prediction. _ICLR_, 2021.
[4]: Anastasios Angelopoulos and Stephen Bates. A Gentle DataSummary to
     Conformal Prediction. 2021.
"""

import math

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive
from bfl_tf.metrics.scores import MIN_PROBABILITY

NUM_BINS = 4000
# k_reg and lambda of [3].
_FREE, _PENALTY = 5, 0.01


def _scale(tail):
  """Maps 1 to 0 and `MIN_PROBABILITY` to 1, with high resolution at
  both ends."""
  floor = MIN_PROBABILITY
  return np.sqrt(np.log(np.clip(tail, floor, 1)) / np.log(floor))


def _tails(falling):
  """Returns the probability of each class and those after it, without
  cancellation.
  """
  tails = np.cumsum(falling[:, ::-1], -1)[:, ::-1]
  return tails / tails[:, :1]


def _least_ambiguous(falling):
  scores = _scale(falling)
  scores[:, 0] = 0
  return scores


def _adaptive(falling):
  return _scale(_tails(falling))


def _regularised(falling):
  rank = np.arange(1, falling.shape[-1] + 1)
  beyond = np.maximum(0, rank - _FREE)
  # The published score less 1. Scores of an overconfident model lie just below
  # multiples of the penalty, so each multiple has a scale of its own.
  excess = _PENALTY * beyond - _tails(falling)
  steps = np.maximum(0, np.ceil(excess / _PENALTY))
  rest = _PENALTY * steps - excess
  above = (steps - 1 + _scale(rest / _PENALTY)) / max(1, beyond[-1])
  return np.where(steps, 1 + np.sqrt(np.maximum(0, above)), _scale(rest)) / 2


# By name, from probabilities in falling order: LAC [1], 1 - p; APS [2], the
# total probability of the classes before this one; RAPS [3], APS and a penalty
# on the rank.
SET_SCORES = {
  'lac': _least_ambiguous,
  'aps': _adaptive,
  'raps': _regularised,
}


def set_scores(probs: npt.ArrayLike, score: str = 'lac') -> np.ndarray:
  """Returns `[num_examples, num_classes]` scores in [0, 1].

  Args:
    score: one of `SET_SCORES`.
  """
  p_bar = predictive.mean(predictive.check_probs(probs))
  order = np.argsort(-p_bar, axis=-1, kind='stable')
  ranked = SET_SCORES[score](np.take_along_axis(p_bar, order, -1))
  scores = np.empty_like(ranked)
  np.put_along_axis(scores, order, np.clip(ranked, 0, 1), -1)
  return scores


def score_counts(
  probs: npt.ArrayLike, labels: npt.ArrayLike, score: str = 'lac'
) -> np.ndarray:
  """Counts a site's scores by bin: all that it sends.

  Args:
    score: one of `SET_SCORES`.

  Returns:
    counts: `[NUM_BINS]` integers, by bins of equal width over [0, 1]; a score
      on an edge is in the bin that ends there.
  """
  p_bar, labels = predictive.checked(probs, labels)
  scores = set_scores(p_bar, score)[np.arange(labels.size), labels]
  edges = np.arange(NUM_BINS + 1) / NUM_BINS
  bins = np.searchsorted(edges, scores, side='left') - 1
  return np.bincount(np.clip(bins, 0, NUM_BINS - 1), minlength=NUM_BINS)


def threshold(counts: npt.ArrayLike, alpha: float) -> float:
  """Returns the largest score of a class in the set.

  Args:
    counts: `[num_bins]`, summed over sites.
    alpha: Probability in (0, 1) that a set misses the label.

  Returns:
    threshold: Threshold in [0, 1]; 1, which includes every class, if there are
      too few scores for this alpha.

  Raises:
    ValueError: alpha is out of range, or no score was counted.
  """
  counts = np.asarray(counts)
  total = int(counts.sum())
  if not 0 < alpha < 1:
    raise ValueError(f'alpha must be in (0, 1), got {alpha!r}.')
  if total < 1:
    raise ValueError('counts must hold at least one score.')
  rank = math.ceil((total + 1) * (1 - alpha))
  if rank > total:
    return 1.0
  place = int(np.searchsorted(np.cumsum(counts), rank))
  return (place + 1) / counts.size
