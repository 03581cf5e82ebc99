"""Scores of predictions, of classes and of single examples.

#### References

[1]: Glenn W. Brier. Verification of forecasts expressed in terms of
     probability. _Monthly Weather Review_, 1950.
[2]: John Fischer et al. Federated Bayesian Deep Learning: The Application of
     Statistical Aggregation Methods to Bayesian Models. 2024.
[3]: Mustafa Ozdayi et al. Improving accuracy of federated learning in non-IID
     settings. arXiv:2010.15582.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive, ranking

# Floor of the label's probability: the smallest normal float32, about 1.2e-38.
# A label with probability 0 costs 87.3 nats instead of infinity.
MIN_PROBABILITY = float(np.finfo(np.float32).tiny)
# Share below which a class is rare, and above which it dominates accuracy. With
# more than 10 classes, a class is rare below half of an even share.
_RARE, _RULING = 0.05, 0.8


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
  p, labels = predictive.checked(probs, labels)
  likelihood = p[np.arange(labels.size), labels]
  return -np.log(np.maximum(likelihood, MIN_PROBABILITY))


def brier_score(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean over examples of the squared distance to the one-hot label, in [0, 2].

  This is the definition of [1]; scikit-learn halves it for two classes.
  """
  p, labels = predictive.checked(probs, labels)
  p[np.arange(labels.size), labels] -= 1
  return float(np.square(p).sum(axis=-1).mean())


def normalized_entropy(probs: npt.ArrayLike) -> np.ndarray:
  """Entropy of each prediction divided by its maximum, log C ([2], Eq. 8).

  The result is float64 `[num_examples]` in [0, 1]; 1 is a uniform prediction.
  """
  p = predictive.probabilities(probs)
  # Rows sum to 1 only up to rounding, so the entropy may leave [0, 1].
  return np.clip(_entropy(p) / np.log(p.shape[-1]), 0.0, 1.0)


def mutual_information(
  probs: npt.ArrayLike, expected_entropy: npt.ArrayLike
) -> np.ndarray:
  """Entropy of the mean prediction minus the mean entropy of the samples.

  The result is float64 `[num_examples]` in nats, at least 0.
  """
  entropy = _entropy(predictive.probabilities(probs))
  return np.maximum(entropy - np.asarray(expected_entropy), 0.0)


def _entropy(p):
  # 0 log 0 is 0.
  logs = np.log(p, out=np.zeros_like(p), where=p > 0)
  return 0.0 - (p * logs).sum(axis=-1)  # The negative of 0 is printed as -0.


def per_class_recall(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> npt.NDArray[np.float64]:
  """Recall of each class, `[num_classes]`; NaN for a class without examples."""
  p, labels = predictive.checked(probs, labels)
  right, num_classes = p.argmax(axis=-1) == labels, p.shape[-1]
  sizes = np.bincount(labels, minlength=num_classes)
  hits = np.bincount(labels, weights=right, minlength=num_classes)
  with np.errstate(invalid='ignore'):
    return hits / sizes


def balanced_accuracy(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean recall over all classes with examples."""
  return float(np.nanmean(per_class_recall(probs, labels)))


def one_against_rest(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> npt.NDArray[np.float64]:
  """AUROC of each class's probability as the score of that class.

  It is `[num_classes]`, and NaN for a class that has no example or all.
  """
  p_bar, labels = predictive.checked(probs, labels)
  auroc = np.full(p_bar.shape[-1], np.nan)
  for number, p in enumerate(p_bar.T):
    is_class = labels == number
    if is_class.any() and not is_class.all():
      auroc[number] = ranking.detection(p[~is_class], p[is_class]).auroc
  return auroc


def imbalance(labels: npt.ArrayLike, names: Sequence[Any]) -> str | None:
  """Returns a note on a class so rare or so frequent that accuracy misleads."""
  sizes = np.bincount(np.asarray(labels), minlength=len(names))
  shares = sizes / sizes.sum()
  rarest, largest = int(shares.argmin()), int(shares.argmax())
  if shares[rarest] < min(_RARE, 0.5 / len(names)):
    named = rarest
  elif shares[largest] > _RULING:
    named = largest
  else:
    return None
  return f'class {names[named]} is {100 * shares[named]:.1f} % of the examples'


def hypothesis_conflict(classes: npt.ArrayLike) -> float:
  """Returns the fraction of examples that two models classify differently [3].

  Args:
    classes: Predicted classes, integers `[num_models, num_examples]`, of at
      least two models.
  """
  classes = np.asarray(classes)
  votes = [(classes == c).sum(0) for c in np.unique(classes)]
  agreeing = sum((vote * (vote - 1)).mean() for vote in votes)
  return float(1 - agreeing / (len(classes) * (len(classes) - 1)))
