"""Scores that a large class cannot hide a small one from."""

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import detection, predictive

# A class is rare below this share, unless most are: then below half of its
# even share. One above the other share rules the accuracy.
_RARE, _RULING = 0.05, 0.8


def per_class_recall(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> npt.NDArray[np.float64]:
  """Fraction of each class's examples whose most probable class it is.

  Returns:
    recall: `[num_classes]` in [0, 1]; higher is better; NaN of a class without
      examples.
  """
  p_bar, labels = predictive.checked(probs, labels)
  right = p_bar.argmax(axis=-1) == labels
  num_classes = p_bar.shape[-1]
  sizes = np.bincount(labels, minlength=num_classes)
  hits = np.bincount(labels, weights=right, minlength=num_classes)
  with np.errstate(invalid='ignore'):
    return hits / sizes


def balanced_accuracy(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
  """Mean of the recall of all classes that have examples.

  Returns:
    balanced_accuracy: Score in [0, 1]; higher is better; a constant prediction
      has 1 / num_classes.
  """
  return float(np.nanmean(per_class_recall(probs, labels)))


def one_against_rest(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> npt.NDArray[np.float64]:
  """AUROC of each class's probability as the score of that class.

  Returns:
    auroc: `[num_classes]` in [0, 1]; 0.5 knows nothing; NaN of a class that no
      example, or every one, is of.
  """
  p_bar, labels = predictive.checked(probs, labels)
  found = np.full(p_bar.shape[-1], np.nan)
  for number, p in enumerate(p_bar.T):
    is_class = labels == number
    if is_class.any() and not is_class.all():
      found[number] = detection.detection(p[~is_class], p[is_class]).auroc
  return found


def imbalance(labels: npt.ArrayLike, num_classes: int) -> str | None:
  """Says which class is so rare, or so frequent, that accuracy misleads.

  Args:
    labels: integers `[num_examples]`, at least one.
    num_classes: Number of classes.

  Returns:
    `class 1 is 1.3 % of the examples`; None where the classes are even enough:
    all above 5 %, or half of an even share, and below 80 %.
  """
  sizes = np.bincount(np.asarray(labels), minlength=num_classes)
  shares = sizes / sizes.sum()
  rarest, largest = int(shares.argmin()), int(shares.argmax())
  if shares[rarest] < min(_RARE, 0.5 / num_classes):
    named = rarest
  elif shares[largest] > _RULING:
    named = largest
  else:
    return None
  return f'class {named} is {100 * shares[named]:.1f} % of the examples'
