"""From four arrays to a data set: what is checked, and how it is told."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf.datasets import columns

# Of how far a feature goes: what float32 may round off at most.
_MOST_LOST = 0.05
# Of a feature's size: how far a constant goes.
_NOISE = 1e-12


def from_arrays(
  name: str,
  x_train: np.ndarray,
  y_train: np.ndarray,
  x_test: np.ndarray,
  y_test: np.ndarray,
  *,
  num_classes: int | None = None,
) -> columns.Dataset:
  """Checks four arrays and returns them as a data set without validation.

  Args:
    name: what `--dataset` said; named in errors.
    x_train: uint8 images `[num_examples, height, width(, channels)]`, float
      images with channels, or features `[num_examples, num_features]` of any
      numbers.
    y_train: integer classes `[num_examples]`; floats or bools that say them,
      or one-hot rows, are taken too.
    x_test: likewise.
    y_test: likewise.
    num_classes: where the source knows it; otherwise the training labels must
      cover 0 to their largest.

  Raises:
    ValueError: naming the data set, the array and the problem.
  """
  where = f'--dataset={name}'
  check_precision(where, 'x_train', np.asarray(x_train))
  train = examples(where, 'x_train', x_train, 'y_train', y_train)
  test = examples(where, 'x_test', x_test, 'y_test', y_test)
  _check_alike(where, train, test)
  if num_classes is None:
    num_classes = _covered(where, train.y)
  for key, y in (('y_train', train.y), ('y_test', test.y)):
    _check_range(f'{where}: {key}', y, num_classes)
  none = train.take(np.arange(0))
  return columns.Dataset(name, num_classes, train, none, test)


class Precision:
  """Whether float32 holds how features differ, over the pieces of a table."""

  def __init__(self):
    """Of no example yet."""
    self._low: Any = np.inf
    self._high: Any = -np.inf
    self._lost: Any = 0.0

  def add(self, x: np.ndarray) -> None:
    """Takes examples in, `[num_examples, num_features]`, not yet float32."""
    wide = x.astype(np.float64, copy=False)
    with np.errstate(over='ignore', invalid='ignore'):
      lost = np.abs(wide - wide.astype(np.float32)).max(0)
    self._low = np.minimum(self._low, wide.min(0))
    self._high = np.maximum(self._high, wide.max(0))
    self._lost = np.maximum(self._lost, lost)

  def check(self, where: str, names: Sequence[str]) -> None:
    """Raises a ValueError that names the first feature for which it does not.

    Args:
      where: names the data.
      names: of the features.
    """
    low, high = self._low, self._high
    with np.errstate(over='ignore', invalid='ignore'):
      varies = high - low
      # Less is what arithmetic in float64 leaves of a constant.
      counts = varies > _NOISE * np.maximum(np.abs(low), np.abs(high))
      # What is too large for float32 is said of the example that has it.
      lost = np.isfinite(self._lost) & (self._lost > _MOST_LOST * varies)
      wrong = np.flatnonzero(counts & lost)
    if wrong.size:
      at = wrong[0]
      raise ValueError(
        f'{where}: {names[at]} goes from {low[at]:.12g} to {high[at]:.12g}, '
        'between which float32 has too few numbers: subtract a constant, or '
        'leave it out.'
      )


def check_precision(where: str, name: str, x: np.ndarray) -> None:
  """Refuses features that `Precision` does; `name` is the array's."""
  numbers = x.dtype.kind in 'iuf' and not np.can_cast(x.dtype, np.float32)
  if numbers and x.ndim == 2 and x.size:
    precision = Precision()
    precision.add(x)
    places = [f'feature {i} of {name}' for i in range(x.shape[1])]
    precision.check(where, places)


def checked(where: str, dataset: columns.Dataset) -> columns.Dataset:
  """Returns a data set that somebody else made, as `from_arrays` makes them.

  Args:
    where: names it in errors.
    dataset: with whatever splits it has.

  Raises:
    ValueError: naming the split and what is wrong in it.
  """
  splits: dict[str, Any] = {}
  for name in ('train', 'validation', 'calibration', 'test'):
    split = getattr(dataset, name)
    # No example to validate on is well; to train and to test on it is not.
    if split is None or (name == 'validation' and not len(split.y)):
      continue
    keys = (f'{name}.x', split.x, f'{name}.y', split.y)
    splits[name] = examples(where, *keys)
    _check_range(f'{where}: {name}.y', splits[name].y, dataset.num_classes)
  _check_alike(where, splits['train'], splits['test'])
  return dataclasses.replace(dataset, **splits)


def _check_alike(where, train, test):
  if train.x.shape[1:] != test.x.shape[1:] or train.x.dtype != test.x.dtype:
    raise ValueError(
      f'{where}: x_train {train.x.shape[1:]} of {train.x.dtype} and x_test '
      f'{test.x.shape[1:]} of {test.x.dtype} must agree.'
    )


def _check_range(where, y, num_classes):
  if y.max() >= num_classes:
    raise ValueError(
      f'{where} has label {y.max()}, out of range: there are {num_classes} '
      f'classes to train on, 0 to {num_classes - 1}.'
    )


def examples(
  where: str, x_name: str, x: np.ndarray, y_name: str, y: np.ndarray
) -> columns.Split:
  """Returns inputs and labels as a `Split` holds them.

  Args:
    where: names the data set in errors.
    x_name: names the inputs there.
    x: as `x_train` of `from_arrays`.
    y_name: names the labels there.
    y: as `y_train` of `from_arrays`.

  Raises:
    ValueError: one of them is wrong, or they are not equally many.
  """
  x = inputs(f'{where}: {x_name}', np.asarray(x))
  y = labels(f'{where}: {y_name}', np.asarray(y))
  if len(x) != len(y):
    raise ValueError(
      f'{where}: {x_name} has {len(x)} examples, {y_name} has {len(y)}.'
    )
  return columns.Split(x, y)


def inputs(where: str, x: np.ndarray) -> np.ndarray:
  """Returns images or features as a `Split` holds them.

  Args:
    where: names them in errors.
    x: as `x_train` of `from_arrays`.

  Raises:
    ValueError: they are neither, or not finite.
  """
  if x.ndim == 0 or x.size == 0:
    raise ValueError(f'{where} is empty, of shape {x.shape}.')
  if x.dtype == np.uint8 and x.ndim == 3:
    return x[..., np.newaxis]
  if x.dtype == np.uint8 and x.ndim == 4:
    return x
  if x.dtype.kind not in 'iufb':
    raise ValueError(f'{where} must be numbers, got {x.dtype}.')
  if x.ndim == 3:
    raise ValueError(
      f'{where} has shape {x.shape} of {x.dtype}: images without a channel are '
      'uint8; others are [N, H, W, C].'
    )
  if x.ndim not in (2, 4):
    raise ValueError(
      f'{where} must be images [N, H, W, C] or features [N, D], got shape '
      f'{x.shape} of {x.dtype}.'
    )
  with np.errstate(over='ignore'):  # Too large for float32: not finite.
    x = x.astype(np.float32, copy=False)
  if not np.isfinite(x).all():
    wrong = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(-1))
    raise ValueError(
      f'{where} has values that are not finite in float32, the first in '
      f'example {wrong[0]}.'
    )
  return x


def labels(where: str, y: np.ndarray) -> np.ndarray:
  """Returns classes `[num_examples]` as int32; `where` names them in errors."""
  y = _classes(where, y)
  if y.min() < 0:
    raise ValueError(f'{where} has the negative label {y.min()}.')
  if y.max() > np.iinfo(np.int32).max:
    raise ValueError(f'{where} has label {y.max()}, out of range.')
  return y.astype(np.int32, copy=False)


def _classes(where, y):
  """Returns labels as integers, of whatever kind says the same."""
  if y.ndim == 2 and y.shape[1] == 1:
    y = y[:, 0]
  if y.size == 0:
    raise ValueError(f'{where} is empty, of shape {y.shape}.')
  if y.dtype.kind in 'USO' and y.ndim == 1:
    raise ValueError(
      f'{where} has texts, as {str(y[0])!r}: number them, as '
      'np.unique(y, return_inverse=True)[1] does.'
    )
  if y.dtype.kind not in 'iufb' or y.ndim not in (1, 2):
    raise ValueError(
      f'{where} must be integer classes [N], got shape {y.shape} of {y.dtype}.'
    )
  whole = y.dtype.kind != 'f' or bool(
    np.all(np.isfinite(y) & (y == np.floor(y)))
  )
  if not whole and y.ndim == 1:
    raise ValueError(
      f'{where} is {y.dtype} with fractions, a regression target: '
      'Classification only, labels must be integers.'
    )
  if y.ndim == 2:
    if not np.all((y == 0) | (y == 1)) or not np.all(y.sum(1) == 1):
      raise ValueError(
        f'{where} of shape {y.shape} is not one-hot, a single 1 a row: labels '
        'must be integer classes [N].'
      )
    return y.argmax(1)
  if y.dtype.kind in 'iu':
    return y
  if np.any(np.abs(y.astype(np.float64)) >= 2**31):
    raise ValueError(f'{where} has a label beyond 2^31: number them from 0.')
  return y.astype(np.int64)


def _covered(where, y):
  classes = np.unique(y)
  if classes.size < 2:
    raise ValueError(
      f'{where}: y_train has no class but {classes[0]}: there is nothing to '
      'tell apart.'
    )
  gaps = np.flatnonzero(classes != np.arange(classes.size))
  if gaps.size:
    raise ValueError(
      f'{where}: y_train has no example of class {gaps[0]}; labels must '
      'cover 0 to the number of classes less 1.'
    )
  return classes.size
