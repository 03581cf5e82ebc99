"""Loading of the data set that `--dataset` names."""

from collections.abc import Sequence
import itertools
from typing import Any

import numpy as np

from bfl_tf.data import (
  arrays,
  builtin,
  columns,
  dataset_config,
  names,
  npz,
  shares,
  tables,
  tfds,
)
from bfl_tf.declare import registry, user_code

# Fields of `DatasetConfig` that apply to some kinds of sources only.
_TAKEN = {
  'tfds': ('train_split', 'test_split'),
  'npz': ('test_fraction', 'min_site_examples'),
  'function': ('min_site_examples',),
  'csv': (
    'test_fraction', 'min_site_examples', 'quiet_data',
    *dataset_config.COLUMNS, *dataset_config.FORMAT,
  ),
}  # fmt: skip


def load(
  dataset: str, seed: int = 0, is_numeric: bool = False, **reading: Any
) -> columns.Dataset:
  """Loads a data set into memory.

  Args:
    dataset: A key of `builtin.BUILTIN`; an image classification set of
      TensorFlow Datasets; a `file.npz` with `x_train, y_train, x_test, y_test`
      or `x, y`; a `file.csv`; or a `package.module:function` that takes no
      arguments and returns those four arrays or a `Dataset`.
    **reading: Fields of `DatasetConfig` that apply to this source.
  """
  read = dataset_config.DatasetConfig(dataset, **reading)
  _check_flags(read)
  data = _load(read, is_numeric)
  if data.train.is_numeric != is_numeric:
    kind, other = ('numbers', 'classes')[:: 1 if is_numeric else -1]
    fix = 'categorical' if is_numeric else 'gaussian'
    raise ValueError(
      f'--dataset={dataset} has {other} as labels, not {kind}: set '
      f'--likelihood={fix}.'
    )
  if read.num_classes not in (0, data.num_classes):
    raise ValueError(
      f'--num_classes={read.num_classes}: --dataset={dataset} has '
      f'{data.num_classes} classes.'
    )
  for split in data.splits.values():
    where = f'--dataset={dataset} has the site'
    names.check(where, (site for site, _ in split.sites))
  data = shares.without_small_sites(data, 'train', read.min_site_examples)
  default = dataset_config.DatasetConfig.test_fraction
  if not len(data.test.y) or read.test_fraction != default:
    data = shares.take(data, 'test', 'test_fraction', read.test_fraction)
  if not len(data.test.y):
    raise ValueError(
      f'--test_fraction=0 leaves no test example of --dataset={dataset}: raise '
      'it.'
    )
  fraction = read.calibration_fraction
  data = shares.take(data, 'calibration', 'calibration_fraction', fraction)
  fraction = read.validation_split
  return shares.take(data, 'validation', 'validation_split', fraction, seed)


def _check_flags(read):
  """Rejects flags that do not apply to this data source."""
  taken = _TAKEN.get(names.kind(read.dataset), ())
  for name in itertools.chain(*_TAKEN.values()):
    given = getattr(read, name) != getattr(dataset_config.DatasetConfig, name)
    if given and name not in taken:
      raise ValueError(
        f'--{name} does not apply to --dataset={read.dataset}: remove it, or '
        'correct the name of the data set.'
      )


def _load(read, is_numeric):
  kind = names.kind(read.dataset)
  if kind == 'builtin':
    return builtin.BUILTIN[read.dataset]()
  if kind == 'npz':
    return npz.load(read, is_numeric)
  if kind == 'csv':
    return tables.load(read, is_numeric)
  if kind == 'tfds':
    return tfds.load(read.dataset, read.train_split, read.test_split)
  result = call('dataset', read.dataset)
  if isinstance(result, columns.Dataset):
    return arrays.checked(f'--dataset={read.dataset}', result, is_numeric)
  num_classes = read.num_classes or None
  return arrays.from_arrays(
    read.dataset, *result, num_classes=num_classes, is_numeric=is_numeric
  )


def call(flag: str, name: str) -> columns.Dataset | Sequence[np.ndarray]:
  """Returns the result of a user's function: a data set or four arrays."""
  return user_code.call(f'--{flag}={name}', registry.resolve(flag, name, {}))
