"""Checks of predictive probabilities and labels."""

import numpy as np
from numpy import typing as npt

# Tolerance on a row's sum of 1: wide enough for a float16 softmax, too narrow
# for logits.
SUM_TOLERANCE = 1e-3


def probabilities(probs: npt.ArrayLike) -> np.ndarray:
  """Returns a copy of `probs` as float64 `[num_examples, num_classes]`."""
  copy = np.array(probs, np.float64)
  # The comparisons are false for NaN.
  if not (
    copy.ndim == 2
    and 0 not in copy.shape
    and copy.shape[1] > 1
    and copy.min() >= 0
    and np.all(abs(copy.sum(-1) - 1) <= SUM_TOLERANCE)
  ):
    raise ValueError(
      'probs must be probabilities, not logits, which sum to 1 over at least 2 '
      f'classes, [num_examples, num_classes], got shape {copy.shape}.'
    )
  return copy


def checked(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
  """Returns `probabilities`, and labels as integers `[num_examples]`."""
  p, labels = probabilities(probs), np.asarray(labels)
  num_examples, num_classes = p.shape
  good = labels.shape == (num_examples,) and labels.dtype.kind in 'iu'
  if not good or labels.min() < 0 or labels.max() >= num_classes:
    raise ValueError(
      f'labels must be integers in [0, {num_classes}) of shape '
      f'({num_examples},), got {labels.dtype} of shape {labels.shape}.'
    )
  return p, labels


def check_per_example(
  name: str, values: npt.ArrayLike, num_examples: int | None = None
) -> np.ndarray:
  """Returns `values`, called `name`, as finite float64 `[num_examples]`."""
  values = np.asarray(values, np.float64)
  wanted = values.size if num_examples is None else num_examples
  if values.shape != (wanted,) or not wanted or not np.isfinite(values).all():
    raise ValueError(
      f'{name} must be finite numbers, one per example, got shape '
      f'{values.shape}.'
    )
  return values


def is_correct(probs: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
  """Returns for each example whether the most probable class is its label.

  If several classes are equally probable, the first one is predicted.
  """
  return confidence(probs, labels)[1]


def confidence(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the largest probability of each example, and `is_correct`."""
  p, labels = checked(probs, labels)
  return p.max(axis=-1), p.argmax(axis=-1) == labels
