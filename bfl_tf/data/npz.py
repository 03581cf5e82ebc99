"""Reading of .npz files with data sets."""

import dataclasses

import numpy as np

from bfl_tf import files
from bfl_tf.data import arrays, columns, dataset_config
from bfl_tf.data import names as names_lib

KEYS = ('x_train', 'y_train', 'x_test', 'y_test')
# Alternative keys, for examples that are split into training and test later.
WHOLE = ('x', 'y')
_MORE = ('client_ids', 'client_ids_test', 'class_names', 'groups')


def load(
  reading: dataset_config.DatasetConfig, is_numeric: bool = False
) -> columns.Dataset:
  """Reads `x_train, y_train, x_test, y_test`, or `x, y`, from an .npz file.

  Optional arrays are `client_ids`, the site of each row of `x_train` or `x`,
  `client_ids_test`, the site of each row of `x_test`, `groups`, the group of
  each row of `x_train` or `x`, and `class_names`.
  """
  path = reading.dataset
  content = _read('dataset', path, (*KEYS, *WHOLE, *_MORE))
  where = f'--dataset={path}'
  whole = 'x_train' not in content and all(key in content for key in WHOLE)
  keys = WHOLE if whole else KEYS
  if missing := [key for key in keys if key not in content]:
    needed = f'{", ".join(KEYS)}, or x, y'
    raise ValueError(f'{where} lacks {", ".join(missing)}; it needs {needed}.')
  called = content.get('class_names', np.array([], str))
  called = _names(where, 'class_names', called, called.size)
  names = () if is_numeric else tuple(called.astype(str).tolist())
  names_lib.check(f'{where}: class_names has', names)
  first = _examples(where, content, keys[:2], 'client_ids', is_numeric)
  if 'groups' in content:
    groups = _names(where, 'groups', content['groups'], len(first.y))
    # The same number at two sites may be two persons.
    _, group = np.unique(groups, return_inverse=True)
    _, site = np.unique(
      group * 0 if first.ids is None else first.ids, return_inverse=True
    )
    first = first._replace(groups=group * (site.max() + 1) + site)
  test = None
  if not whole:
    test = _examples(where, content, keys[2:], 'client_ids_test', is_numeric)
  known = len(names) or reading.num_classes
  dataset = arrays.from_splits(path, known, first, test)
  return dataclasses.replace(dataset, class_names=names)


def _examples(where, content, keys, ids, is_numeric):
  x, y = keys
  split = arrays.examples(where, x, content[x], y, content[y], is_numeric)
  if ids in content:
    split = split._replace(ids=_names(where, ids, content[ids], len(split.y)))
  return split


def inputs(flag: str, path: str, keys: tuple[str, ...]) -> np.ndarray:
  """Returns the first array of `keys` that a file contains."""
  content = _read(flag, path, keys)
  for key in keys:
    if key in content:
      return content[key]
  raise ValueError(f'--{flag}={path} needs {" or ".join(keys)}.')


def _names(where, key, names, size):
  if names.shape != (size,) or names.dtype.kind not in 'iuUS':
    raise ValueError(
      f'{where}: {key} must be integers or texts [{size}], got shape '
      f'{names.shape} of {names.dtype}.'
    )
  return names.astype(str) if names.dtype.kind == 'S' else names


def _read(flag, path, keys):
  try:
    return files.read_npz(path, keys)
  except (FileNotFoundError, files.UnreadableError) as error:
    raise ValueError(f'--{flag}={path} is not a readable .npz file.') from error
