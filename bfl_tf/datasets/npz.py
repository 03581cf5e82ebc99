"""A user's own arrays: `--dataset=path/to/file.npz`."""

import zipfile

import numpy as np

from bfl_tf.datasets import arrays, columns

KEYS = ('x_train', 'y_train', 'x_test', 'y_test')


def load(path: str) -> columns.Dataset:
  """Reads `x_train, y_train, x_test, y_test` from an .npz file.

  Args:
    path: the file; its arrays are those of `arrays.from_arrays`.

  Raises:
    ValueError: the file cannot be read, or an array is wrong.
  """
  found = _read('dataset', path, KEYS)
  return arrays.from_arrays(path, *(found[key] for key in KEYS))


def load_images(path: str) -> np.ndarray:
  """Reads `x_train` alone, for `--server_dataset`: it needs no labels.

  Args:
    path: the file.

  Raises:
    ValueError: the file cannot be read, or lacks it.
  """
  return _read('server_dataset', path, ('x_train',))['x_train']


def _read(flag, path, keys):
  try:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
      raise ValueError('it holds a single array')
    with archive:
      found = {key: archive[key] for key in keys if key in archive}
  except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
    raise ValueError(
      f'--{flag}={path} cannot be read as an .npz file: {error}.'
    ) from error
  missing = [key for key in keys if key not in found]
  if missing:
    raise ValueError(
      f'--{flag}={path} lacks {", ".join(missing)}; it needs {", ".join(keys)}.'
    )
  return found
