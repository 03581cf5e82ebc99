"""Curves and bins of predictions, as named arrays."""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive


class RetentionCurve(NamedTuple):
  """Accuracy of the least uncertain examples, by the fraction retained.

  Attributes:
    retained: `[num_examples]`, fraction kept, from 1 / num_examples to 1.
    accuracy: `[num_examples]`, accuracy on the examples kept; the last value is
      the accuracy on all examples.
  """

  retained: np.ndarray
  accuracy: np.ndarray

  @property
  def area(self) -> float:
    """Mean accuracy over the fractions retained, in [0, 1]; higher is better.

    An uninformative uncertainty has the plain accuracy as its area.
    """
    return float(self.accuracy.mean())


class Reliability(NamedTuple):
  """Accuracy and confidence in bins of equal width.

  Attributes:
    accuracy: `[num_bins]`, fraction correct; NaN if the bin is empty.
    confidence: `[num_bins]`, mean confidence; NaN if the bin is empty.
  """

  edges: np.ndarray
  accuracy: np.ndarray
  confidence: np.ndarray
  counts: np.ndarray
  right: np.ndarray

  @property
  def expected_calibration_error(self) -> float:
    """Mean over examples of their bin's |accuracy - confidence|."""
    filled = self.counts > 0
    gaps = np.abs(self.accuracy - self.confidence)[filled]
    return float(gaps @ self.counts[filled] / self.counts.sum())


class GapAbove(NamedTuple):
  """Calibration of the predictions with at least a threshold's confidence.

  Attributes:
    gap: `[num_thresholds]`, accuracy minus mean confidence; NaN without
      predictions.
  """

  thresholds: np.ndarray
  gap: np.ndarray
  counts: np.ndarray


def retention_curve(
  uncertainty: npt.ArrayLike, correct: npt.ArrayLike
) -> RetentionCurve:
  """Accuracy of the examples that remain without the most uncertain ones.

  Equally uncertain examples count with their mean accuracy, so the order of the
  examples does not matter.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is kept first.
    correct: `[num_examples]`, booleans (or 0 and 1).
  """
  uncertainty = predictive.check_per_example('uncertainty', uncertainty)
  ranks = np.arange(1, uncertainty.size + 1)
  correct = predictive.check_per_example('correct', correct, ranks.size)
  if not np.isin(correct, (0, 1)).all():
    raise ValueError('correct must hold booleans, or only 0 and 1.')
  _, group, sizes = np.unique(
    uncertainty, return_inverse=True, return_counts=True
  )
  # Within a group of equal uncertainty, the number of hits is interpolated.
  hits = np.cumsum(np.bincount(group, weights=correct))
  right = np.interp(ranks, np.append(0, np.cumsum(sizes)), np.append(0, hits))
  return RetentionCurve(ranks / ranks.size, right / ranks)


def reliability(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> Reliability:
  """Bins predictions by the probability of the predicted class."""
  confidence, correct = predictive.confidence(probs, labels)
  return reliability_of(confidence, correct, num_bins)


def reliability_of(
  confidence: np.ndarray, correct: np.ndarray, num_bins: int = 15
) -> Reliability:
  """Returns the curve of `reliability` from confidence and correctness.

  Args:
    confidence: `[num_examples]`, probability of the predicted class.
    correct: `[num_examples]`, booleans.
  """
  # np.linspace would round some edges up, e.g., 0.6 of five bins.
  edges = np.arange(num_bins + 1) / num_bins
  places = np.searchsorted(edges, confidence, side='right') - 1
  bins = np.minimum(places, num_bins - 1)
  counts = np.bincount(bins, minlength=num_bins)
  right = np.bincount(bins[correct], minlength=num_bins)
  sums = np.bincount(bins, weights=confidence, minlength=num_bins)

  def mean(totals):
    nothing = np.full(num_bins, np.nan)
    return np.divide(totals, counts, out=nothing, where=counts > 0)

  return Reliability(edges, mean(right), mean(sums), counts, right)


def gap_above(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_thresholds: int = 101
) -> GapAbove:
  """Accuracy minus confidence of predictions with confidence at least tau.

  Returns:
    curve: The `GapAbove`; its gap at 0 is accuracy minus mean confidence.

  References:
    M. Vono et al. QLSD: Quantised Langevin stochastic dynamics for Bayesian
    federated learning. 2021.
  """
  confidence, correct = predictive.confidence(probs, labels)
  steps = num_thresholds - 1
  thresholds = np.arange(steps + 1) / max(steps, 1)
  order = np.argsort(-confidence, kind='stable')
  total = np.append(0, np.cumsum((correct - confidence)[order]))
  counts = np.searchsorted(-confidence[order], -thresholds, side='right')
  nothing = np.full(counts.size, np.nan)
  gap = np.divide(total[counts], counts, out=nothing, where=counts > 0)
  return GapAbove(thresholds, gap, counts)
