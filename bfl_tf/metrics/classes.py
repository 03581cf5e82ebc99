"""Scores per class, and a check for class imbalance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import detection, predictive

# Share below which a class is rare, and above which it dominates accuracy. With
# more than 10 classes, a class is rare below half of an even share.
_RARE, _RULING = 0.05, 0.8


def per_class_recall(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> npt.NDArray[np.float64]:
  """Recall of each class, `[num_classes]`; NaN for a class without examples."""
  p_bar, labels = predictive.checked(probs, labels)
  right = p_bar.argmax(axis=-1) == labels
  num_classes = p_bar.shape[-1]
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
      auroc[number] = detection.detection(p[~is_class], p[is_class]).auroc
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
