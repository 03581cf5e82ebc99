"""Features of a pre-trained network (FL-SWAG, 8.3).

The server shares a pre-trained network without its last layer: that of a run,
or any other. Clients then train a logistic regression on its features.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import hashlib
import pathlib
import time

import numpy as np

from bfl_tf import data, files, models
from bfl_tf.analysis import model
from bfl_tf.config.config import Config
from bfl_tf.data import names
from bfl_tf.declare import registry, user_code
from bfl_tf.federation import run_data
from bfl_tf.federation.plan import Plan
from bfl_tf.startup import tf, tf_keras

_BATCH = 1000
# Number of examples of a batch, and of a stored part, for a network by name.
_SMALL, _PART = 32, 960


def read(
  config: Config,
  name: str,
  train_split: str = 'train',
  test_split: str = 'test',
) -> data.Dataset:
  """Loads the data set whose features are computed.

  The run's own data set is read with the run's flags, so that its test examples
  stay held out. Another table is read with the run's flags of columns and
  notation.
  """
  if name != config.dataset:
    is_table = names.kind(name) == 'csv'
    used = (*data.COLUMNS, *data.FORMAT) if is_table else ()
    reading = {key: getattr(config, key) for key in used}
    reading |= {'train_split': train_split, 'test_split': test_split}
    return data.load(name, is_numeric=config.is_numeric, **reading)
  # `of_dataset` excludes the run's validation examples by their content.
  config = config.replace(
    validation_split=0, train_split=train_split, test_split=test_split
  )
  return run_data.load(config)


def of_dataset(
  trained: model.Trained,
  dataset: data.Dataset,
  seen: data.Dataset | None = None,
) -> Mapping[str, np.ndarray]:
  """Returns features of examples that a network was not trained on.

  The result has the arrays that `--dataset=file.npz` reads, including sites and
  class names if there are any. The inputs are float32 `[num_examples,
  num_features]`. Examples that the network was trained on are left out, also of
  the test examples.
  """
  config = trained.config
  if Plan.of(config).inference.has_random_layers:
    raise ValueError(
      f'--run is a run of --variant={config.variant}: features need a run of '
      '--variant=deterministic.'
    )
  seen = run_data.load(config) if seen is None else seen
  wanted = trained.task.features
  if dataset.features and wanted:
    dataset, seen = dataset.recoded(wanted), seen.recoded(wanted)
  used = {_digest(x) for x in (*seen.train.x, *seen.validation.x)}
  train, test = (
    split.take(np.array([_digest(x) not in used for x in split.x], bool))
    for split in (dataset.train, dataset.test)
  )
  if not (train.y.size and test.y.size):
    raise ValueError(
      f'--dataset={dataset.name}: the network of --run was trained on all of '
      'its training or test examples: choose another data set.'
    )
  dataset = dataclasses.replace(dataset, train=train, test=test)
  return arrays(dataset, functools.partial(hidden, trained))


def arrays(
  dataset: data.Dataset, network: Callable[[np.ndarray], np.ndarray]
) -> Mapping[str, np.ndarray]:
  """Returns the arrays of an .npz file with the features of a data set."""
  train, test = dataset.train, dataset.test
  content = {
    'x_train': network(train.x),
    'y_train': train.y,
    'x_test': network(test.x),
    'y_test': test.y,
  }
  if dataset.class_names:
    content['class_names'] = np.array(dataset.class_names)
  for name, split in (('client_ids', train), ('client_ids_test', test)):
    if split.ids is not None:
      content[name] = np.asarray(split.ids)
  return content


def computed(name: str, x: np.ndarray, folder: pathlib.Path) -> np.ndarray:
  """Returns features of a network; a repeated call continues a stopped one.

  Args:
    name: `package.module:function` of a function from a batch of raw examples
      to numbers, or of a tf_keras model, which is compiled. An error of it is a
      ValueError.
    x: `[num_examples, ...]` raw examples.
    folder: Directory of the parts that are complete, which stay there. The name
      of a part is a digest of its examples and of the file of the network.

  Returns:
    Array `[num_examples, num_features]`, float32.
  """
  flag = f'--network={name}'
  network = registry.imported('network', name)
  if isinstance(network, tf_keras.Model):
    network = tf.function(
      functools.partial(network, training=False),
      [tf.TensorSpec([None, *x.shape[1:]], x.dtype)],
    )
  features = []
  for first in range(0, len(x), _PART):
    part = x[first : first + _PART]
    path = folder / f'{_digest(part, name, user_code.digest(name))}.npy'
    if not path.exists():
      outputs, started = [], time.monotonic()
      for at in range(0, len(part), _SMALL):
        batch = part[at : at + _SMALL]
        values = np.asarray(user_code.call(flag, network, batch))
        if len(values) != len(batch):
          raise ValueError(
            f'{flag} returned an array of shape {values.shape} for '
            f'{len(batch)} examples: return one row per example.'
          )
        outputs.append(values.reshape(len(batch), -1).astype(np.float32))
        done = at + len(batch)
        rate = done / (time.monotonic() - started)
        shown = f'{first + done} of {len(x)} examples, {rate:.0f} per second'
        print(f'\r{shown} ', end='', flush=True)
      folder.mkdir(parents=True, exist_ok=True)
      with files.replacing(path) as new, new.open('wb') as file:
        np.save(file, np.concatenate(outputs))
    features.append(np.load(path))
  print()
  return np.concatenate(features)


def hidden(trained: model.Trained, x: np.ndarray) -> np.ndarray:
  """Returns outputs of the last hidden layer for raw examples.

  The result is float32 `[num_examples, num_features]`.
  """
  last = models.last_layer(trained.model)
  inner = tf_keras.Model(trained.model.input, last.input)
  parts = [
    inner(trained.normalize(x[i : i + _BATCH]), training=False).numpy()
    for i in range(0, len(x), _BATCH)
  ]
  # NumPy files cannot contain the bfloat16 values of mixed precision.
  return np.concatenate(parts).reshape(len(x), -1).astype(np.float32)


def _digest(example, *more):
  hasher = hashlib.blake2b(example.tobytes(), digest_size=16)
  hasher.update(repr(more).encode() if more else b'')
  return hasher.hexdigest()
