"""From `--dataset` to a data set."""

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

import numpy as np

from bfl_tf import own, registry, seeds
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


def load(
  name: str,
  *,
  train_split: str = 'train',
  test_split: str = 'test',
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
    train_split: TFDS's slicing syntax, `train[:10000]`; TFDS sets only.
    test_split: likewise.
    validation_split: the fraction, in [0, 1), of every class of the training
      examples that becomes the validation split.
    seed: decides which examples those are.
    calibration_fraction: of each site's training examples, in [0, 1), of each
      class alike; the same ones whatever the seed.
    **reading: of a file of one's own, the fields of `tables.Reading`.

  Returns:
    The data set; `validation` has no examples where `validation_split` is 0.

  Raises:
    ValueError: naming the flag and what to do.
  """
  read = tables.Reading(**reading)
  kind = names.kind(name)
  if kind is names.Kind.BUILTIN:
    dataset = builtin.BUILTIN[name]()
  elif kind is names.Kind.NPZ:
    dataset = npz.load(name, read)
  elif kind is names.Kind.CSV:
    dataset = tables.load(name, read)
  elif kind is names.Kind.FUNCTION:
    dataset = _from_function(name, read)
  else:
    dataset = tfds.load(name, train_split, test_split)
  _check_flags(name, read, train_split, test_split)
  if read.num_classes not in (0, dataset.num_classes):
    raise ValueError(
      f'--num_classes={read.num_classes}: --dataset={name} has '
      f'{dataset.num_classes} classes.'
    )
  dataset = shares.take_calibration(dataset, calibration_fraction)
  return _take_validation(dataset, validation_split, seed)


def check_there(name: str, train_split: str, test_split: str) -> None:
  """Refuses a set that is not there, before others are started who read it.

  Not what only reading shows, and no code of anybody's is imported. A set of
  TFDS that is not prepared is downloaded. Arguments are those of `load`.
  """
  kind = names.kind(name)
  if kind is names.Kind.TFDS:
    tfds.check(name, train_split, test_split)
  elif kind.is_file and not os.path.exists(name):
    load(name)  # Says why it cannot.
  _check_flags(name, tables.Reading(), train_split, test_split)


def _check_flags(name, read, train_split, test_split):
  """Refuses flags that say nothing about such a set."""
  kind = names.kind(name)
  said = dataclasses.asdict(read)
  usual = dataclasses.asdict(tables.Reading())
  if kind is not names.Kind.TFDS:
    said |= {'train_split': train_split, 'test_split': test_split}
    usual |= {'train_split': 'train', 'test_split': 'test'}
  taken = {'num_classes'}
  if kind.is_file:
    taken.add('test_fraction')
  if kind is names.Kind.CSV:
    taken |= {'label_column', 'client_column', 'ignore_columns'}
  for flag, value in said.items():
    if flag not in taken and value != usual[flag]:
      text = ','.join(value) if isinstance(value, tuple) else value
      raise ValueError(
        f'--{flag}={text} says nothing about {kind.value}: leave it out for '
        f'--dataset={name}.'
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


def _take_validation(dataset, validation_split, seed):
  if not 0 <= validation_split < 1:
    raise ValueError(
      f'validation_split must be in [0, 1), got {validation_split!r}.'
    )
  if validation_split == 0:
    return dataset
  if dataset.validation.y.size:
    raise ValueError(
      f'validation_split={validation_split}, but --dataset={dataset.name} '
      'brings its own validation examples.'
    )
  rng = seeds.generator(seed, 'validation_split')
  held, rest = columns.stratify(dataset.train.y, validation_split, rng)
  if not held.size:
    raise ValueError(
      f'validation_split={validation_split} leaves no validation example of '
      f'the {dataset.train.y.size} of {dataset.name}.'
    )
  taken = dataclasses.replace(
    dataset,
    train=dataset.train.take(rest),
    validation=dataset.train.take(held),
    rows=dataset.row_numbers[rest],
  )
  share = f'validation_split={validation_split}'
  shares.check_trained(share, taken, dataset.train.y, dataset.class_names)
  return taken
