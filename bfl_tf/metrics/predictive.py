"""Checks of predictive probabilities and labels."""

import numpy as np
from numpy import typing as npt

# Tolerance on a row's sum of 1: wide enough for a float16 softmax, too narrow
# for logits.
SUM_TOLERANCE = 1e-3


def check_probs(probs: npt.ArrayLike) -> np.ndarray:
  """Returns `probs` as samples, `[num_samples, num_examples, num_classes]`.

  The dtype does not change; functions convert one sample at a time to float64.
  """
  probs = np.asarray(probs)
  # The comparisons are false for NaN.
  if not (
    probs.ndim in (2, 3)
    and 0 not in probs.shape
    and probs.shape[-1] > 1
    and probs.min() >= 0
    and np.all(abs(probs.sum(-1, dtype=np.float64) - 1) <= SUM_TOLERANCE)
  ):
    raise ValueError(
      'probs must be probabilities, not logits, which sum to 1 over at least 2 '
      'classes, [num_examples, num_classes] or [num_samples, num_examples, '
      f'num_classes], got shape {probs.shape}.'
    )
  return probs if probs.ndim == 3 else probs[np.newaxis]


def check_labels(labels: npt.ArrayLike, probs: np.ndarray) -> np.ndarray:
  """Returns `labels` as integers `[num_examples]` that index into `probs`."""
  labels = np.asarray(labels)
  num_examples, num_classes = probs.shape[-2:]
  good = labels.shape == (num_examples,) and labels.dtype.kind in 'iu'
  if not good or labels.min() < 0 or labels.max() >= num_classes:
    raise ValueError(
      f'labels must be integers in [0, {num_classes}) of shape '
      f'({num_examples},), got {labels.dtype} of shape {labels.shape}.'
    )
  return labels


def checked(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the mean probabilities `[num_examples, num_classes]` and labels."""
  samples = check_probs(probs)
  return mean(samples), check_labels(labels, samples)


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


def mean(samples: np.ndarray) -> np.ndarray:
  """Returns the mean over samples, float64, `[num_examples, C]`."""
  return samples.mean(axis=0, dtype=np.float64)


def is_correct(probs: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
  """Returns for each example whether the most probable class is its label.

  If several classes are equally probable, the first one is predicted.

  Returns:
    correct: booleans `[num_examples]`.
  """
  return confidence(probs, labels)[1]


def confidence(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the largest probability of each example, and `is_correct`."""
  p, labels = checked(probs, labels)
  return p.max(axis=-1), p.argmax(axis=-1) == labels
