"""Calibration errors, reliability curves and temperature scaling.

#### References

[1]: Khanh Nguyen and Brendan O'Connor. Posterior calibration and exploratory
     analysis for natural language processing models. _EMNLP_, 2015.
[2]: Meelis Kull et al. Beyond temperature scaling. _NeurIPS_, 2019.
[3]: Chuan Guo et al. On Calibration of Modern Neural Networks. _ICML_, 2017.
[4]: Andrew Gelman et al. A weakly informative default prior distribution for
     logistic and other regression models. _Annals of Applied Statistics_, 2008.
[5]: Maxime Vono et al. QLSD: Quantised Langevin stochastic dynamics for
     Bayesian federated learning. 2021.
"""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive, scores

# Beyond this range of temperatures, predictions are one-hot or uniform.
_TEMPERATURES = (1e-2, 1e2)


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


def expected_calibration_error(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
  """Mean over examples of their bin's |accuracy - confidence| [3]."""
  return reliability(probs, labels, num_bins).expected_calibration_error


def gap_above(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_thresholds: int = 101
) -> tuple[np.ndarray, np.ndarray]:
  """Accuracy minus confidence of predictions with at least a confidence [5].

  Returns the thresholds from 0 to 1, and the gaps; NaN without predictions.
  """
  confidence, correct = predictive.confidence(probs, labels)
  thresholds = np.arange(num_thresholds) / (num_thresholds - 1)
  order = np.argsort(-confidence, kind='stable')
  total = np.append(0, np.cumsum((correct - confidence)[order]))
  counts = np.searchsorted(-confidence[order], -thresholds, side='right')
  nothing = np.full(counts.size, np.nan)
  gap = np.divide(total[counts], counts, out=nothing, where=counts > 0)
  return thresholds, gap


def adaptive_calibration_error(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
  """Mean |accuracy - confidence| over bins of equal size [1], in [0, 1]."""
  bins = equal_bins(probs, labels, num_bins)
  gaps = np.abs(bins.confidence - bins.accuracy)
  return float(np.average(gaps, weights=bins.counts))


class EqualBins(NamedTuple):
  """Bins of equally many examples, from the least confident.

  Attributes:
    counts: `[num_bins]`, number of examples; they differ by at most 1.
  """

  confidence: np.ndarray
  accuracy: np.ndarray
  counts: np.ndarray


def equal_bins(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> EqualBins:
  """Returns accuracy and confidence in bins by rank of the confidence [1].

  Examples of equal confidence count with their mean accuracy, so the order of
  the examples does not matter.
  """
  confidence, correct = predictive.confidence(probs, labels)
  _, group = np.unique(confidence, return_inverse=True)
  shared = np.bincount(group, weights=correct) / np.bincount(group)
  order = np.argsort(confidence, kind='stable')
  bins = np.array_split(order, min(num_bins, order.size))
  return EqualBins(
    np.array([confidence[b].mean(dtype=np.float64) for b in bins]),
    np.array([shared[group[b]].mean() for b in bins]),
    np.array([b.size for b in bins]),
  )


def classwise_calibration_error(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
  """Mean calibration error of the probability of each class [2], in [0, 1]."""
  by_class, labels = predictive.checked(probs, labels)
  errors = [
    reliability_of(p, labels == c, num_bins).expected_calibration_error
    for c, p in enumerate(by_class.T)
  ]
  return float(np.mean(errors))


def overconfidence(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean confidence minus accuracy; negative if underconfident."""
  confidence, correct = predictive.confidence(probs, labels)
  return float(confidence.mean() - correct.mean())


def tempered(probs: npt.ArrayLike, temperature: float) -> np.ndarray:
  """Returns normalized `p^(1 / temperature)`, `[num_examples, num_classes]`."""
  floored = np.maximum(predictive.probabilities(probs), scores.MIN_PROBABILITY)
  logs = np.log(floored) / temperature
  powers = np.exp(logs - logs.max(-1, keepdims=True))
  return powers / powers.sum(-1, keepdims=True)


def fit_temperature(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Returns the most probable temperature [3] under a weak prior.

  The prior of log T is the standard normal distribution. Without it, T is 0 if
  all examples are right (separable). Weak priors are the usual remedy [4].

  Args:
    probs: Probabilities of calibration examples, separate from test examples.
  """
  from scipy import optimize  # It takes half a second.

  size = np.size(labels)

  def loss(log_temperature):
    cooled = tempered(probs, np.exp(log_temperature))
    prior = log_temperature**2 / 2
    return scores.negative_log_likelihood(cooled, labels) + prior / size

  bounds = tuple(np.log(_TEMPERATURES))
  optimum = optimize.minimize_scalar(loss, bounds=bounds, method='bounded')
  return float(np.exp(optimum.x))
