"""Validated data sets from arrays.

`where` is the start of an error message: the flag with the name of the data
set, and the array.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy import typing as npt

from bfl_tf.data import columns

_MOST = np.iinfo(np.int32).max
LOST = (
  'numbers whose spread float32 rounds away (subtract the first number from '
  'all)'
)


def from_arrays(
  name: str,
  x_train: np.ndarray,
  y_train: np.ndarray,
  x_test: np.ndarray,
  y_test: np.ndarray,
  *,
  num_classes: int | None = None,
  is_numeric: bool = False,
) -> columns.Dataset:
  """Checks four arrays and returns them as a data set without validation split.

  Examples are uint8 images `[num_examples, height, width(, channels)]`, float
  images with channels, or features `[num_examples, num_features]`. Labels
  `[num_examples]` are integers, whole floats or bools, or one-hot rows; or
  numbers, if `is_numeric`. Without `num_classes`, the training labels must
  contain every class up to the largest. Errors begin with `--dataset=<name>`.
  """
  where = f'--dataset={name}'
  train = examples(where, 'x_train', x_train, 'y_train', y_train, is_numeric)
  test = examples(where, 'x_test', x_test, 'y_test', y_test, is_numeric)
  return from_splits(name, num_classes or 0, train, test)


def from_splits(
  name: str,
  num_classes: int,
  train: columns.Split,
  test: columns.Split | None = None,
) -> columns.Dataset:
  """Returns a data set of splits; `num_classes=0` counts training labels."""
  where = f'--dataset={name}'
  if train.is_numeric:
    num_classes = 0
  elif not num_classes:
    num_classes = _covered(where, train.y)
  none = columns.Split(train.x[:0], train.y[:0])
  dataset = columns.Dataset(name, num_classes, train, none, test or none)
  _check_splits(where, dataset)
  return dataset


def checked(
  where: str, dataset: columns.Dataset, is_numeric: bool = False
) -> columns.Dataset:
  """Validates and converts a user's data set, as `from_arrays` does."""
  splits: dict[str, Any] = {
    name: examples(
      where, f'{name}.x', split.x, f'{name}.y', split.y, is_numeric
    )._replace(ids=split.ids, groups=split.groups)
    for name, split in dataset.splits.items()
    # Only the validation split may be empty.
    if name != 'validation' or len(split.y)
  }
  num_classes = 0 if is_numeric else dataset.num_classes
  dataset = dataclasses.replace(dataset, num_classes=num_classes, **splits)
  _check_splits(where, dataset)
  return dataset


def _check_splits(where, dataset):
  """Rejects splits of different shapes or types, and labels out of range."""
  wanted, num_classes = dataset.train.x, dataset.num_classes
  for name, split in dataset.splits.items():
    if not len(split.y):
      continue
    x, y = split.x, split.y
    if x.shape[1:] != wanted.shape[1:] or x.dtype != wanted.dtype:
      raise ValueError(
        f'{where}: x_train {wanted.shape[1:]} of {wanted.dtype} and x_{name} '
        f'{x.shape[1:]} of {x.dtype} must agree.'
      )
    if not split.is_numeric and y.max() >= num_classes:
      raise ValueError(
        f'{where}: y_{name} has label {y.max()}, but num_classes={num_classes} '
        f'allows labels 0 to {num_classes - 1}.'
      )


def is_lost(x: np.ndarray) -> np.ndarray:
  """Returns for each feature whether float32 rounds its spread away.

  At the bound, a standardised value has an error of 1 % of the standard
  deviation.
  """
  std, size = np.std(x, axis=0, dtype=np.float64), abs(x).max(axis=0)
  # A smaller range is the rounding error of a constant.
  return (np.ptp(x, axis=0) > 1e-15 * size) & (std < 1e-5 * size)


def examples(
  where: str,
  x_name: str,
  x: np.ndarray,
  y_name: str,
  y: np.ndarray,
  is_numeric: bool = False,
) -> columns.Split:
  """Validates inputs and labels and returns them as a `Split`."""
  given = np.asarray(x)
  x = inputs(f'{where}: {x_name}', given)
  if x.ndim == 2 and given.dtype != x.dtype and (lost := is_lost(given)).any():
    raise ValueError(f'{where}: {x_name}, feature {lost.argmax()} has {LOST}.')
  read = numbers if is_numeric else labels
  y = read(f'{where}: {y_name}', np.asarray(y))
  if len(x) != len(y):
    raise ValueError(
      f'{where}: {x_name} has {len(x)} examples, {y_name} has {len(y)}.'
    )
  return columns.Split(x, y)


def inputs(
  where: str, x: np.ndarray, may_miss: npt.ArrayLike = False
) -> np.ndarray:
  """Returns the inputs of a `Split`; features that `may_miss` may be NaN."""
  if x.dtype == np.uint8 and x.ndim == 3:
    x = x[..., np.newaxis]
  if not x.size or x.ndim not in (2, 4) or x.dtype.kind not in 'iufb':
    raise ValueError(
      f'{where} must be features [N, D], images [N, H, W, C] or uint8 images '
      f'[N, H, W], got shape {x.shape} of {x.dtype}.'
    )
  if x.dtype == np.uint8 and x.ndim == 4:
    return x
  with np.errstate(over='ignore'):  # Too large values become infinite.
    x = x.astype(np.float32, copy=False)
  good = np.isfinite(x) | (np.isnan(x) & np.asarray(may_miss))
  if not good.all():
    wrong = np.flatnonzero(~good.reshape(len(x), -1).all(-1))
    raise ValueError(
      f'{where} has values that are not finite in float32, the first in '
      f'example {wrong[0]}. Missing values are supported in .csv files only.'
    )
  return x


def labels(where: str, y: np.ndarray) -> np.ndarray:
  """Returns int32 classes `[num_examples]` from labels of any valid type."""
  is_number = y.size and y.dtype.kind in 'iufb'
  if y.ndim == 2 and is_number:
    if y.shape[1] == 1:
      y = y[:, 0]
    elif np.all((y == 0) | (y == 1)) and np.all(y.sum(1) == 1):
      y = y.argmax(1)
  whole = y.ndim == 1 and is_number
  # Floats are compared, because a label may exceed int32.
  wide = y.astype(np.float64) if whole else y
  if not whole or np.any(
    (wide != np.floor(wide)) | (wide < 0) | (wide > _MOST)
  ):
    ends = f', {y.min():g} to {y.max():g}' if whole else ''
    raise ValueError(
      f'{where} must be integers [N] from 0 to {_MOST}, got shape {y.shape} of '
      f'{y.dtype}{ends}. For numbers, set --likelihood=gaussian. Texts are '
      'numbered by np.unique(y, return_inverse=True)[1].'
    )
  return y.astype(np.int32, copy=False)


def numbers(where: str, y: np.ndarray) -> np.ndarray:
  """Returns float32 labels `[num_examples]` from numbers of any type."""
  if y.ndim == 2 and y.shape[1] == 1:
    y = y[:, 0]
  if y.ndim != 1 or not y.size or y.dtype.kind not in 'iuf':
    raise ValueError(
      f'{where} must be numbers [N] for regression, got shape {y.shape} of '
      f'{y.dtype}. For classes, set --likelihood=categorical.'
    )
  with np.errstate(over='ignore'):  # Too large values become infinite.
    y32 = y.astype(np.float32)
  wrong = np.flatnonzero(~np.isfinite(y32))
  if wrong.size:
    raise ValueError(f'{where} is not finite in float32 in example {wrong[0]}.')
  if is_lost(y[:, np.newaxis]).any():
    raise ValueError(f'{where} has {LOST}.')
  return y32


def _covered(where, y):
  classes = np.unique(y)
  gaps = np.flatnonzero(classes != np.arange(classes.size))
  if classes.size < 2 or gaps.size:
    missing = gaps[0] if gaps.size else 1
    raise ValueError(
      f'{where}: y_train has no example of class {missing}; labels must cover '
      '0 to the number of classes less 1, at least two.'
    )
  return classes.size
