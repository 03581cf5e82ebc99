"""Sets of classes with a promise: split conformal prediction over sites.

The score of an example is 1 - p(label). A site sends how many of its held-out
scores fall into each of many fine bins, never a score; counts add up. The
threshold is the upper edge of the bin that holds the score of rank
ceil((n + 1) (1 - alpha)): so a set holds the label of a new example that is
exchangeable with the held-out ones with a chance of at least 1 - alpha.

#### References

[1]: Mauricio Sadinle, Jing Lei, Larry Wasserman. Least Ambiguous Set-Valued
     Classifiers with Bounded Error Levels. _JASA_, 2019.
[2]: Anastasios Angelopoulos and Stephen Bates. A Gentle Introduction to
     Conformal Prediction. 2021.
"""

import math

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive

NUM_BINS = 1000


def score_counts(probs: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
  """Counts a site's scores by bin: all that it sends.

  Returns:
    counts: `[NUM_BINS]` integers, of bins of equal width over [0, 1]; a score
      on an edge is in the bin that ends there. Those of sites are added.
  """
  p_bar, labels = predictive.checked(probs, labels)
  scores = 1 - p_bar[np.arange(labels.size), labels]
  edges = np.arange(NUM_BINS + 1) / NUM_BINS
  bins = np.searchsorted(edges, scores, side='left') - 1
  return np.bincount(np.clip(bins, 0, NUM_BINS - 1), minlength=NUM_BINS)


def threshold(counts: npt.ArrayLike, alpha: float) -> float:
  """Returns the largest score that a class in the set may have.

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


def prediction_sets(probs: npt.ArrayLike, limit: float) -> np.ndarray:
  """Returns `[num_examples, num_classes]` bool: the classes in each set.

  Args:
    limit: of `threshold`.
  """
  return 1 - predictive.mean(predictive.check_probs(probs)) <= limit
