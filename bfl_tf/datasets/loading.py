"""From `--dataset` to a data set."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import own, registry
from bfl_tf.datasets import (
  arrays,
  builtin,
  columns,
  names,
  npz,
  shares,
  tables,
  tfds,
)

# What each kind of source takes of `tables.Reading`, but `num_classes`.
_TAKEN = {
  'tfds': ('train_split', 'test_split'),
  'npz': ('test_fraction',),
  'csv': (
    'test_fraction', 'label_column', 'client_column', 'ignore_columns',
    'categorical_columns',
  ),
}  # fmt: skip


def load(
  name: str,
  *,
  validation_split: float = 0.0,
  seed: int = 0,
  calibration_fraction: float = 0.0,
  **reading: Any,
) -> columns.Dataset:
  """Loads a data set into memory, once.

  Args:
    name: a key of `builtin.BUILTIN`; an image classification set of TensorFlow
      Datasets, or `tiny_imagenet`; a `file.npz` with `x_train, y_train, x_test,
      y_test` or `x, y`; a `file.csv`; or a `package.module:function` that takes
      no arguments and returns those four arrays or a `Dataset`.
    validation_split: the fraction, in [0, 1), of every class of the training
      examples that becomes the validation split.
    seed: decides which examples those are.
    calibration_fraction: of each site's training examples, in [0, 1), of each
      class alike; the same ones whatever the seed.
    **reading: fields of `tables.Reading`, of those that such a source takes.

  Returns:
    The data set; `validation` has no examples where `validation_split` is 0.

  Raises:
    ValueError: naming the flag and what to do.
  """
  read, kind = tables.Reading(**reading), names.kind(name)
  _check_flags(name, read)
  if kind == 'builtin':
    dataset = builtin.BUILTIN[name]()
  elif kind == 'npz':
    dataset = npz.load(name, read)
  elif kind == 'csv':
    dataset = tables.load(name, read)
  elif kind == 'function':
    dataset = _from_function(name, read)
  else:
    dataset = tfds.load(name, read.train_split, read.test_split)
  if read.num_classes not in (0, dataset.num_classes):
    raise ValueError(
      f'--num_classes={read.num_classes}: --dataset={name} has '
      f'{dataset.num_classes} classes.'
    )
  flag, fraction = 'test_fraction', read.test_fraction
  if not len(dataset.test.y) or fraction != tables.Reading.test_fraction:
    unseen = bool(read.num_classes)
    dataset = shares.take(dataset, 'test', flag, fraction, unseen=unseen)
  if not len(dataset.test.y):
    raise ValueError(
      f'--{flag}=0 leaves no test example of --dataset={name}: raise it.'
    )
  flag, fraction = 'calibration_fraction', calibration_fraction
  dataset = shares.take(dataset, 'calibration', flag, fraction)
  flag, fraction = 'validation_split', validation_split
  return shares.take(dataset, 'validation', flag, fraction, seed)


def _check_flags(name, read):
  """Refuses flags that say nothing about such a source."""
  taken = ('num_classes', *_TAKEN.get(names.kind(name), ()))
  for field in dataclasses.fields(read):
    given = getattr(read, field.name) != field.default
    if given and field.name not in taken:
      raise ValueError(
        f'--{field.name} says nothing about --dataset={name}: leave it out.'
      )


def call(flag: str, name: str) -> columns.Dataset | Sequence[np.ndarray]:
  """Returns what a user's function returned: a data set or four arrays.

  Args:
    flag: what the user set, for the error message.
    name: `package.module:function`.
  """
  result = own.call(f'--{flag}={name}', registry.resolve(flag, name, {}))
  is_four = isinstance(result, tuple | list) and len(result) == 4
  if not is_four and not isinstance(result, columns.Dataset):
    raise ValueError(
      f'--{flag}={name} must return a Dataset or (x_train, y_train, x_test, '
      f'y_test), got {type(result).__name__}.'
    )
  return result


def _from_function(name, read):
  result = call('dataset', name)
  if isinstance(result, columns.Dataset):
    return arrays.checked(f'--dataset={name}', result)
  return arrays.from_arrays(name, *result, num_classes=read.num_classes or None)
