"""Uncertainty of each prediction, and its decomposition.

Notation:
  p_m: probabilities of Monte Carlo sample m; `probs[m]`.
  p_bar: mean of the probabilities over samples, Eq. 7 of [1].

Both parts of the predictive variance are traces of Eq. 9 of [1], so that
`aleatoric + epistemic = sum_c p_bar_c (1 - p_bar_c)`. The epistemic part uses
deviations from the mean, because `E[p^2] - E[p]^2` would lose small variances
to rounding.

#### References

[1]: John Fischer et al. Federated Bayesian Deep Learning: The Application of
     Statistical Aggregation Methods to Bayesian Models. 2024.
[2]: Yongchan Kwon et al. Uncertainty quantification using Bayesian neural
     networks in classification. _CSDA_, 2020.
"""

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive


def normalized_entropy(probs: npt.ArrayLike) -> np.ndarray:
  """Entropy of the mean prediction divided by its maximum, log C (Eq. 8).

  Returns:
    entropy: float64 `[num_examples]` in [0, 1]; 1 is a uniform prediction.
  """
  p_bar = predictive.mean(predictive.check_probs(probs))
  # Rows sum to 1 only up to rounding, so the entropy may leave [0, 1].
  return np.clip(_entropy(p_bar) / np.log(p_bar.shape[-1]), 0.0, 1.0)


def mutual_information(
  probs: npt.ArrayLike, expected_entropy: npt.ArrayLike
) -> np.ndarray:
  """Entropy of the mean prediction minus the mean entropy of the samples.

  The result is float64 `[num_examples]` in nats, at least 0.
  """
  p_bar = predictive.mean(predictive.check_probs(probs))
  return np.maximum(_entropy(p_bar) - np.asarray(expected_entropy), 0.0)


def _entropy(p):
  # 0 log 0 is 0.
  logs = np.log(p, out=np.zeros_like(p), where=p > 0)
  return 0.0 - (p * logs).sum(axis=-1)  # The negative of 0 is printed as -0.


def aleatoric_uncertainty(probs: npt.ArrayLike) -> np.ndarray:
  """Variance that more training data would not remove (Eq. 9, first term).

  Returns:
    aleatoric: mean over m of `sum_c p_mc (1 - p_mc)`, float64
      `[num_examples]` in [0, 1 - 1 / C].
  """
  samples = predictive.check_probs(probs)
  total = np.zeros(samples.shape[1])
  for sample in samples:
    p = sample.astype(np.float64)
    total += (p * (1 - p)).sum(axis=-1)
  # A probability may exceed 1 by rounding.
  return np.maximum(total / len(samples), 0.0)


def epistemic_uncertainty(probs: npt.ArrayLike) -> np.ndarray:
  """Variance from not knowing the model (Eq. 9, second term).

  Returns:
    epistemic: mean over m of `sum_c (p_mc - p_bar_c)^2`, float64
      `[num_examples]` in [0, 1 - 1 / C]; 0 for a single sample.
  """
  samples = predictive.check_probs(probs)
  p_bar = predictive.mean(samples)
  total = np.zeros(samples.shape[1])
  for sample in samples:
    total += np.square(sample - p_bar).sum(axis=-1)
  return total / len(samples)
