"""Predictive probabilities and labels, checked where they enter the room."""

import numpy as np
from numpy import typing as npt

# How far a row of probabilities may be from summing to 1. Wide enough for a
# float16 softmax, far too narrow for logits.
SUM_TOLERANCE = 1e-3


def check_probs(probs: npt.ArrayLike) -> np.ndarray:
  """Returns `probs` as samples, `[num_samples, num_examples, num_classes]`.

  Args:
    probs: `[num_examples, num_classes]`, taken as a single sample, or
      `[num_samples, num_examples, num_classes]`. The dtype is kept: each
      function widens to float64 one sample at a time.

  Raises:
    ValueError: the shape is another, or a row is not a distribution.
  """
  probs = np.asarray(probs)
  if probs.ndim not in (2, 3) or 0 in probs.shape or probs.shape[-1] < 2:
    raise ValueError(
      'probs must have shape [num_examples, num_classes] or [num_samples, '
      'num_examples, num_classes] with at least 2 classes, got '
      f'{probs.shape}.'
    )
  if probs.dtype.kind not in 'fiu':
    raise ValueError(f'probs must be real numbers, got dtype {probs.dtype}.')
  if not np.isfinite(probs).all():
    raise ValueError('probs must be finite, got NaN or infinity.')
  if (probs < 0).any():
    raise ValueError(f'probs must not be negative, got {probs.min()!r}.')
  totals = probs.sum(axis=-1, dtype=np.float64)
  worst = totals.flat[np.abs(totals - 1).argmax()]
  if abs(worst - 1) > SUM_TOLERANCE:
    raise ValueError(
      f'probs must sum to 1 over classes, got a sum of {worst:.6g}.'
    )
  return probs if probs.ndim == 3 else probs[np.newaxis]


def check_labels(labels: npt.ArrayLike, probs: np.ndarray) -> np.ndarray:
  """Returns `labels` as integers `[num_examples]` that index into `probs`."""
  labels = np.asarray(labels)
  num_examples, num_classes = probs.shape[-2:]
  if labels.shape != (num_examples,):
    raise ValueError(
      f'labels must have shape [num_examples] = ({num_examples},), got '
      f'{labels.shape}.'
    )
  if labels.dtype.kind not in 'iu':
    raise ValueError(f'labels must be integers, got dtype {labels.dtype}.')
  if labels.min() < 0 or labels.max() >= num_classes:
    raise ValueError(
      f'labels must lie in [0, {num_classes}), got {labels.min()} to '
      f'{labels.max()}.'
    )
  return labels


def check_num_bins(num_bins: int) -> int:
  """Returns `num_bins`, a positive integer."""
  integral = isinstance(num_bins, (int, np.integer))
  if isinstance(num_bins, bool) or not integral or num_bins <= 0:
    raise ValueError(f'num_bins must be a positive integer, got {num_bins!r}.')
  return int(num_bins)


def check_per_example(
  name: str, values: npt.ArrayLike, num_examples: int | None = None
) -> np.ndarray:
  """Returns `values`, the argument `name`, as finite float64 `[num_examples]`.

  Args:
    name: of the argument, for the error message.
    values: one number (or boolean) per example.
    num_examples: how many there must be; any positive number where None.

  Raises:
    ValueError: the shape is another, or a value is not a finite number.
  """
  values = np.asarray(values)
  wanted = values.size if num_examples is None else num_examples
  if values.shape != (wanted,) or wanted == 0:
    count = 'num_examples' if num_examples is None else num_examples
    raise ValueError(f'{name} must have shape [{count}], got {values.shape}.')
  if values.dtype.kind not in 'fiub' or not np.isfinite(values).all():
    raise ValueError(f'{name} must hold finite numbers.')
  return values.astype(np.float64)


def mean(samples: np.ndarray) -> np.ndarray:
  """Returns the mean over samples (Eq. 7), float64, `[num_examples, C]`."""
  return samples.mean(axis=0, dtype=np.float64)


def is_correct(probs: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
  """Says for each example whether the most probable class is its label.

  Args:
    probs: `[num_examples, num_classes]`, or `[num_samples, ...]` of those. Of
      equally probable classes the first is the predicted one.
    labels: integers `[num_examples]`.

  Returns:
    correct: booleans `[num_examples]`.
  """
  return confidence(probs, labels)[1]


def confidence(
  probs: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the largest probability of each example, and `is_correct`.

  Args:
    probs: `[num_examples, num_classes]`, or `[num_samples, ...]` of those.
    labels: integers `[num_examples]`.

  Returns:
    confidence: float64 `[num_examples]`.
    correct: booleans `[num_examples]`.
  """
  samples = check_probs(probs)
  p = mean(samples)
  return p.max(axis=-1), p.argmax(axis=-1) == check_labels(labels, samples)
