"""Image classification data sets of TensorFlow Datasets (TFDS).

The environment variable `TFDS_DATA_DIR` is the folder of prepared sets, which
need no network. Functions import TFDS themselves, because it takes seconds.
"""

from collections.abc import Iterator
import contextlib
import os
import signal
import sys
import threading

import numpy as np

from bfl_tf.data import arrays, builtin, columns
from bfl_tf.declare import registry, user_code


def load(name: str, train_split: str, test_split: str) -> columns.Dataset:
  """Loads a training and a test split; the name may include the version."""
  builder, num_classes = _open('dataset', name)
  # The test split goes first, because some sets lack it.
  _check_split(builder, 'test_split', test_split)
  _check_split(builder, 'train_split', train_split)
  x_train, y_train = _read(builder, train_split)
  x_test, y_test = _read(builder, test_split)
  return arrays.from_arrays(
    name, x_train, y_train, x_test, y_test, num_classes=num_classes
  )


def load_images(name: str, split: str, flag: str) -> np.ndarray:
  """Loads the images of one split."""
  builder, _ = _open(flag, name)
  _check_split(builder, flag.replace('server_dataset', 'server_split'), split)
  return _read(builder, split)[0]


def _open(flag, name):
  """Returns a prepared builder, and the number of classes."""
  import tensorflow_datasets as tfds

  from bfl_tf.data import tiny_imagenet  # noqa: F401  Registers itself.

  where = f'--{flag}={name}'
  known = [*builtin.BUILTIN, *tfds.list_builders(with_community_datasets=False)]
  base = name.partition(':')[0].partition('/')[0]
  if base not in known:
    raise ValueError(
      f'{where} is unknown.{registry.hint(base, known)} Choose one of '
      f'{", ".join(builtin.BUILTIN)}, a name of TensorFlow Datasets, a '
      'file.csv, a file.npz or package.module:function.'
    )
  with _named_errors(f'{where} is not prepared in TFDS_DATA_DIR'):
    root = os.environ.get('TFDS_DATA_DIR') or tfds.core.constants.DATA_DIR
    builder = tfds.builder(name, data_dir=root)
    if not builder.is_prepared():
      _download(builder, root)
  return builder, _check_classification(where, builder.info)


def _download(builder, root):
  """Downloads and prepares a set.

  Ctrl-C and SIGTERM end the program at once: an exception would wait until the
  threads of TensorFlow Datasets give up their retries.
  """
  size = sum(info.size for info in (builder.url_infos or {}).values())
  in_main = threading.current_thread() is threading.main_thread()
  # A notebook's kernel must survive Ctrl-C.
  takes_over = in_main and not hasattr(sys, 'ps1')
  numbers = (signal.SIGINT, signal.SIGTERM) if takes_over else ()
  before = {n: signal.signal(n, signal.SIG_DFL) for n in numbers}
  try:
    print(
      f'Downloading {builder.name}, {size / 2**20:.0f} MiB, from '
      f'{builder.info.homepage} to TFDS_DATA_DIR={root}.',
      file=sys.stderr,
      flush=True,
    )
    builder.download_and_prepare()
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


@contextlib.contextmanager
def _named_errors(what: str) -> Iterator[None]:
  """Prefixes an error of TFDS with a line that names the flag."""
  try:
    yield
  except Exception as error:  # TFDS raises errors of many types.
    raise ValueError(
      f'{what}; TensorFlow Datasets: {user_code.describe(error)}'
    ) from error


def _check_classification(where, info):
  """Returns the number of classes of labelled images of one size."""
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
      f'{where} must have images of one size with one class label each, but '
      f'has {keys}: {image}, {label}. Convert other data sets to a file.npz.'
    )
  return label.num_classes


def _check_split(builder, flag, split):
  with _named_errors(f'--{flag}={split} is no split of {builder.name}'):
    if not builder.info.splits[split].num_examples:
      raise ValueError('it has no examples')


def _read(builder, split):
  import tensorflow as tf
  import tensorflow_datasets as tfds

  with tf.device('/CPU:0'):
    whole = builder.as_dataset(split=split, batch_size=-1, as_supervised=True)
    return tfds.as_numpy(whole)
