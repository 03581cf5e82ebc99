"""Further calibration errors, and temperature scaling.

#### References

[1]: Khanh Nguyen and Brendan O'Connor. Posterior calibration and exploratory
     analysis for natural language processing models. _EMNLP_, 2015.
[2]: Meelis Kull et al. Beyond temperature scaling. _NeurIPS_, 2019.
[3]: Chuan Guo et al. On Calibration of Modern Neural Networks. _ICML_, 2017.
[4]: Andrew Gelman et al. A weakly informative default prior distribution for
     logistic and other regression models. _Annals of Applied Statistics_, 2008.
"""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import curves, predictive, scores

# Beyond this range of temperatures, predictions are one-hot or uniform.
_TEMPERATURES = (1e-2, 1e2)


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
  p_bar, labels = predictive.checked(probs, labels)
  errors = [
    curves.reliability_of(p, labels == c, num_bins).expected_calibration_error
    for c, p in enumerate(p_bar.T)
  ]
  return float(np.mean(errors))


def overconfidence(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean confidence minus accuracy; negative if underconfident."""
  confidence, correct = predictive.confidence(probs, labels)
  return float(confidence.mean() - correct.mean())


def tempered(probs: npt.ArrayLike, temperature: float) -> np.ndarray:
  """Returns normalized `p^(1 / temperature)`, `[num_examples, num_classes]`."""
  mean = predictive.mean(predictive.check_probs(probs))
  logs = np.log(np.maximum(mean, scores.MIN_PROBABILITY)) / temperature
  powers = np.exp(logs - logs.max(-1, keepdims=True))
  return powers / powers.sum(-1, keepdims=True)


def fit_temperature(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Returns the most probable temperature [3] under a weak prior.

  The prior of log T is the standard normal distribution. Without it, T is 0 if
  all examples are right (separable). Weak priors are the usual remedy [4].

  Args:
    probs: Probabilities of calibration examples, separate from test examples.
  """

  size = np.size(labels)

  def loss(log_temperature):
    cooled = tempered(probs, np.exp(log_temperature))
    prior = log_temperature**2 / 2
    return scores.negative_log_likelihood(cooled, labels) + prior / size

  bounds = tuple(np.log(_TEMPERATURES))
  from scipy import optimize  # It takes half a second.

  optimum = optimize.minimize_scalar(loss, bounds=bounds, method='bounded')
  return float(np.exp(optimum.x))
