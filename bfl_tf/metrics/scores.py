"""Scores that summarize a set of predictions in one number.

#### References

[1]: Chuan Guo et al. On Calibration of Modern Neural Networks. _ICML_, 2017.
[2]: Glenn W. Brier. Verification of forecasts expressed in terms of
     probability. _Monthly Weather Review_, 1950.
"""

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import curves, predictive

# Floor of the label's probability: the smallest normal float32, about 1.2e-38.
# A label with probability 0 costs 87.3 nats instead of infinity.
MIN_PROBABILITY = float(np.finfo(np.float32).tiny)


def accuracy(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Fraction of examples whose most probable class is the label."""
  return float(predictive.is_correct(probs, labels).mean())


def negative_log_likelihood(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> float:
  """Mean of `-log p(label)`, with `p` floored at `MIN_PROBABILITY`."""
  return float(log_losses(probs, labels).mean())


def log_losses(probs: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
  """Returns `[num_examples]`; their mean is `negative_log_likelihood`."""
  p_bar, labels = predictive.checked(probs, labels)
  likelihood = p_bar[np.arange(labels.size), labels]
  return -np.log(np.maximum(likelihood, MIN_PROBABILITY))


def brier_score(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean over examples of the squared distance to the one-hot label, in [0, 2].

  This is the definition of [2]; scikit-learn halves it for two classes.
  """
  p_bar, labels = predictive.checked(probs, labels)
  p_bar[np.arange(labels.size), labels] -= 1
  return float(np.square(p_bar).sum(axis=-1).mean())


def expected_calibration_error(
  probs: npt.ArrayLike, labels: npt.ArrayLike, num_bins: int = 15
) -> float:
  """Mean over examples of their bin's |accuracy - confidence| [1]."""
  bins = curves.reliability(probs, labels, num_bins)
  return bins.expected_calibration_error
