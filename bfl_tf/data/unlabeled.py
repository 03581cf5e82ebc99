"""Loading of unlabeled examples, as for `--server_dataset`.

FedBE distils on such examples. They may come from another task: for CIFAR-10,
from CIFAR-100 or resized Tiny-ImageNet (Chen & Chao 2021, Table 4).
"""

import numpy as np

from bfl_tf.data import (
  arrays,
  builtin,
  columns,
  csv_files,
  loading,
  names,
  npz,
  tfds,
)
from bfl_tf.startup import tf

_CHUNK = 2**24  # Values held in float32 at a time.
_LUMA = (0.299, 0.587, 0.114)  # Weights of red, green, blue (ITU-R BT.601).


def load_unlabeled(
  name: str,
  *,
  split: str,
  like: columns.Dataset,
  resize: bool,
  flag: str = 'server_dataset',
) -> np.ndarray:
  """Loads the images of a data set that may be of another task.

  Args:
    name: Value of `--dataset`, as in `load`; an .npz file needs `x_train` only,
      a .csv file the features of `like`.
    split: TFDS split; other data sets have `train` only.
    resize: Whether to convert images to the height, width and channels of
      `like`. Interpolation is linear, with antialiasing for smaller images.
      Grey is repeated in every colour, and colours become their luma.
  """
  where = f'--{flag}={name}'
  images = np.asarray(_load(flag, name, split, like))
  if names.kind(name) != 'csv':  # A .csv may have missing values.
    images = arrays.inputs(f'{where}: images', images)
  wanted = like.train.x
  if images.shape[1:] == wanted.shape[1:] and images.dtype == wanted.dtype:
    return images
  channels = {images.shape[-1], wanted.shape[-1]}
  is_possible = (
    images.ndim == wanted.ndim == 4
    and images.dtype == wanted.dtype
    and (len(channels) == 1 or channels == {1, 3})
  )
  if not (is_possible and resize):
    fix = 'set --resize' if is_possible else 'they cannot be converted'
    raise ValueError(
      f'{where} has {images.dtype} of shape {images.shape[1:]}, clients train '
      f'on {wanted.dtype} of shape {wanted.shape[1:]}: {fix}.'
    )
  return _resize(images, wanted.shape[1:])


def _load(flag, name, split, like):
  kind = names.kind(name)
  if kind == 'tfds':
    return tfds.load_images(name, split, flag)
  if split != 'train':
    raise ValueError(
      f'the split {split} is of TFDS sets only: remove it for --{flag}={name}.'
    )
  if kind == 'builtin':
    return builtin.BUILTIN[name]().train.x
  if kind == 'npz':
    return npz.inputs(flag, name, ('x_train', 'x'))
  if kind == 'csv':
    where = f'--{flag}={name}'
    return csv_files.rows_like(name, like.features, where, like.notation)
  result = loading.call(flag, name)
  return result.train.x if isinstance(result, columns.Dataset) else result[0]


def _resize(images, shape):
  resized = np.empty((len(images), *shape), images.dtype)
  rows = max(1, _CHUNK // max(images[0].size, resized[0].size))
  with tf.device('/CPU:0'):
    for i in range(0, len(images), rows):
      resized[i : i + rows] = _resize_batch(images[i : i + rows], shape)
  return resized


def _resize_batch(batch, shape):
  x = tf.cast(batch, tf.float32)
  if x.shape[-1] > shape[-1]:
    x = tf.reduce_sum(x * _LUMA, axis=-1, keepdims=True)
  x = tf.image.resize(x, shape[:2], 'bilinear', antialias=True)
  if x.shape[-1] < shape[-1]:
    x = tf.repeat(x, shape[-1], axis=-1)
  if batch.dtype == np.uint8:
    x = tf.saturate_cast(tf.round(x), tf.uint8)
  return x.numpy()
