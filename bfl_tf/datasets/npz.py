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
  try:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
      raise ValueError('it holds a single array')
    with archive:
      found = {key: archive[key] for key in KEYS if key in archive}
  except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
    raise ValueError(
      f'--dataset={path} cannot be read as an .npz file: {error}.'
    ) from error
  missing = [key for key in KEYS if key not in found]
  if missing:
    raise ValueError(
      f'--dataset={path} lacks {", ".join(missing)}; it needs '
      f'{", ".join(KEYS)}.'
    )
  return arrays.from_arrays(path, *(found[key] for key in KEYS))
