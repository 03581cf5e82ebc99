"""Any image classification set of TensorFlow Datasets, by its name there.

`TFDS_DATA_DIR` says where prepared sets lie. A set that is prepared needs no
network. TFDS itself takes seconds to import: only here, when it is wanted.
"""

import difflib
import os
from typing import Any

from bfl_tf.datasets import arrays, columns


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
  builder = _builder(name)
  _prepare(name, builder)
  num_classes = _check_classification(name, builder.info)
  x_train, y_train = _read(builder, 'train_split', train_split)
  x_test, y_test = _read(builder, 'test_split', test_split)
  return arrays.from_arrays(
    name, x_train, y_train, x_test, y_test, num_classes=num_classes
  )


def _builder(name: str) -> Any:
  import tensorflow_datasets as tfds

  try:
    return tfds.builder(name, data_dir=os.environ.get('TFDS_DATA_DIR'))
  except tfds.core.DatasetNotFoundError as error:
    near = difflib.get_close_matches(name, tfds.list_builders(), n=1)
    hint = f' Did you mean {near[0]!r}?' if near else ''
    raise ValueError(
      f'--dataset={name} is unknown.{hint} Give digits, breast_cancer, wine, '
      'a name of TensorFlow Datasets, a file.npz or package.module:function.'
    ) from error
  except Exception as error:  # Configs, versions and imports fail in many ways.
    raise ValueError(f'--dataset={name}: {_line(error)}') from error


def _prepare(name, builder):
  if builder.is_prepared():
    return
  try:
    builder.download_and_prepare()
  except Exception as error:  # Network, checksums, manual downloads, disk.
    raise ValueError(
      f'--dataset={name} is not prepared in {builder.data_dir} and could not '
      f'be downloaded ({_line(error)}): run `tfds build {name}` where there is '
      'a network, and set TFDS_DATA_DIR to its folder.'
    ) from error


def _check_classification(name, info):
  """Returns the number of classes of a set of equal images with one label."""
  import tensorflow_datasets as tfds

  keys = info.supervised_keys
  if not keys or len(keys) != 2 or not all(isinstance(k, str) for k in keys):
    raise ValueError(
      f'--dataset={name} has no supervised (image, label) pair: '
      'Classification only.'
    )
  image, label = (info.features[key] for key in keys)
  if not isinstance(label, tfds.features.ClassLabel) or not label.num_classes:
    raise ValueError(
      f'--dataset={name} has {type(label).__name__} {keys[1]!r} as its label, '
      'not classes: Classification only.'
    )
  if not isinstance(image, tfds.features.Image) or None in image.shape:
    raise ValueError(
      f'--dataset={name} has {type(image).__name__} {keys[0]!r} of shape '
      f'{image.shape}: images of one size only. Resize them into a file.npz.'
    )
  return label.num_classes


def _read(builder, flag, split):
  import tensorflow as tf
  import tensorflow_datasets as tfds

  try:
    num_examples = builder.info.splits[split].num_examples
  except (ValueError, KeyError) as error:
    raise ValueError(
      f'--{flag}={split} is no split of {builder.name}, which has '
      f'{", ".join(sorted(builder.info.splits))}; a slice reads train[:10000].'
    ) from error
  if not num_examples:
    raise ValueError(f'--{flag}={split} holds no examples of {builder.name}.')
  with tf.device('/CPU:0'):
    whole = builder.as_dataset(split=split, batch_size=-1, as_supervised=True)
    return tfds.as_numpy(whole)


def _line(error: Exception) -> str:
  """Returns the first line of what went wrong."""
  text = str(error.args[0] if isinstance(error, KeyError) else error).strip()
  return text.splitlines()[0] if text else type(error).__name__
