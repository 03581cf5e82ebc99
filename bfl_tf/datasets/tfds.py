"""Any image classification set of TensorFlow Datasets, by its name there.

`TFDS_DATA_DIR` says where prepared sets lie. A set that is prepared needs no
network. TFDS itself takes seconds to import: only here, when it is wanted.
"""

import os
from typing import Any

import numpy as np

from bfl_tf import own, registry
from bfl_tf.datasets import arrays, builtin, columns


def load(name: str, train_split: str, test_split: str) -> columns.Dataset:
  """Loads two splits whole, as columns.

  Args:
    name: `cifar10`, or with config and version as TFDS writes it.
    train_split: in TFDS's slicing syntax: `train[:10000]`.
    test_split: likewise.

  Raises:
    ValueError: no such set or split, not image classification, or not here
      and not to be downloaded.
  """
  builder, num_classes = _open('dataset', name)
  # That of the test goes first: it is the one that sets lack.
  _check_split(builder, 'test_split', test_split)
  _check_split(builder, 'train_split', train_split)
  x_train, y_train = _read(builder, train_split)
  x_test, y_test = _read(builder, test_split)
  return arrays.from_arrays(
    name, x_train, y_train, x_test, y_test, num_classes=num_classes
  )


def load_images(name: str, split: str, flag: str) -> np.ndarray:
  """Loads the images of one split, no other of which needs to be prepared."""
  builder, _ = _open(flag, name)
  named = 'server_split' if flag == 'server_dataset' else flag
  _check_split(builder, named, split)
  return _read(builder, split)[0]


def _open(flag, name):
  """Returns a prepared builder, and the number of classes."""
  where = f'--{flag}={name}'
  builder = _builder(where, name)
  _prepare(where, builder)
  return builder, _check_classification(where, builder.info)


def _builder(where: str, name: str) -> Any:
  import tensorflow_datasets as tfds

  from bfl_tf.datasets import tiny_imagenet  # noqa: F401  Registers itself.

  try:
    return tfds.builder(name, data_dir=os.environ.get('TFDS_DATA_DIR'))
  except Exception as error:  # Configs, versions and imports fail in many ways.
    known = [*builtin.BUILTIN, *tfds.list_builders()]
    raise ValueError(
      f'{where} is unknown.{registry.hint(name, known)} Give one of '
      f'{", ".join(builtin.BUILTIN)}, a name of TensorFlow Datasets, a '
      'file.csv, a file.npz or package.module:function '
      f'({own.describe(error)}).'
    ) from error


def _prepare(where, builder):
  if builder.is_prepared():
    return
  try:
    builder.download_and_prepare()
  except Exception as error:  # Network, checksums, manual downloads, disk.
    # Not `tfds build`: it needs apache_beam, and does not know our own set.
    raise ValueError(
      f'{where} is not prepared in {builder.data_dir} and could not be '
      f'downloaded ({own.describe(error)}): run the same where there is a '
      'network, and set TFDS_DATA_DIR to its folder.'
    ) from error


def _check_classification(where, info):
  """Returns the number of classes of a set of equal images with one label."""
  import tensorflow_datasets as tfds

  keys = info.supervised_keys or ()
  image, label = (
    info.features[key] if isinstance(key, str) else None
    for key in (*keys, None, None)[:2]
  )
  if (
    not isinstance(label, tfds.features.ClassLabel)
    or not isinstance(image, tfds.features.Image)
    or None in image.shape
  ):
    raise ValueError(
      f'{where} is not of images of one size with a class each, but of {keys}: '
      f'{image}, {label}. Classification only; write others into a file.npz.'
    )
  return label.num_classes


def _check_split(builder, flag, split):
  try:
    num_examples = builder.info.splits[split].num_examples
  except (ValueError, KeyError) as error:
    splits = sorted(builder.info.splits)
    fix = f'a slice reads {splits[0]}[:10000]'
    if split == 'test' and 'validation' in splits:
      fix = f'set --{flag}=validation'
    raise ValueError(
      f'--{flag}={split} is no split of {builder.name}, which has '
      f'{", ".join(splits)} in {builder.data_dir}; {fix}.'
    ) from error
  if not num_examples:
    raise ValueError(f'--{flag}={split} holds no examples of {builder.name}.')


def _read(builder, split):
  import tensorflow as tf
  import tensorflow_datasets as tfds

  with tf.device('/CPU:0'):
    whole = builder.as_dataset(split=split, batch_size=-1, as_supervised=True)
    return tfds.as_numpy(whole)
