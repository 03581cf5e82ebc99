"""Sets of classes with a promise: split conformal prediction over sites.

A score says how little a class belongs to an example, `SET_SCORES`. A site
sends how many of its held-out labels' scores fall into each of many fine bins,
never a score; counts add up. The threshold is the upper edge of the bin that
holds the score of rank ceil((n + 1) (1 - alpha)): so a set holds the label of a
new example that is exchangeable with the held-out ones with a chance of at
least 1 - alpha.

Every score of the most probable class is 0: no set is empty. Where that class
is the label more often than promised, sets have one class and hold the label
more often.

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

import math

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive

NUM_BINS = 1000
# k_reg and lambda of [3].
_FREE, _PENALTY = 5, 0.01


def _least_ambiguous(falling):
  scores = 1 - falling
  scores[:, 0] = 0
  return scores


def _adaptive(falling):
  return np.cumsum(falling, -1) - falling


def _regularised(falling):
  rank = np.arange(1, falling.shape[-1] + 1)
  penalty = _PENALTY * np.maximum(0, rank - _FREE)
  return (_adaptive(falling) + penalty) / (1 + penalty[-1])


# By name, of probabilities from the largest: LAC [1], 1 - p; APS [2], what the
# classes before this one have together; RAPS [3], that and a penalty for many
# classes before this one, over the most that it can be.
SET_SCORES = {
  'lac': _least_ambiguous,
  'aps': _adaptive,
  'raps': _regularised,
}


def set_scores(probs: npt.ArrayLike, score: str = 'lac') -> np.ndarray:
  """Returns `[num_examples, num_classes]` scores in [0, 1].

  Args:
    score: of `SET_SCORES`.
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
    score: of `SET_SCORES`.

  Returns:
    counts: `[NUM_BINS]` integers, of bins of equal width over [0, 1]; a score
      on an edge is in the bin that ends there. Those of sites are added.
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
    alpha: in (0, 1): how often a set may miss.

  Returns:
    threshold: in [0, 1]; 1, every class, where there are too few scores for the
      promise.

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
