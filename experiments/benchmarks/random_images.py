"""Random images for benchmarks, whose speed does not depend on contents."""

import functools
import pathlib
from typing import NamedTuple

import numpy as np

from bfl_tf import data as data_lib
from bfl_tf.config.config import Config


class Images(NamedTuple):
  """Random images of one shape for one network; `augment` crops and flips."""

  shape: tuple[int, ...]
  per_client: int
  batch_size: int
  network: str
  augment: bool = False
  num_clients: int = 10
  optimizer: str = 'adam'
  learning_rate: float = 1e-3


SHAPES = {
  'resnet20': Images((32, 32, 3), 512, 32, 'resnet20'),
  'lenet5': Images((28, 28, 1), 4000, 40, 'lenet5'),
  'lenet5_cifar10': Images((32, 32, 3), 4000, 40, 'lenet5', augment=True),
  # The cohort and the images per user of pfl-research's benchmark.
  'pfl_cnn': Images(
    (32, 32, 3),
    50,
    10,
    'experiments.papers.pfl_research:cnn',
    num_clients=50,
    optimizer='sgd',
    learning_rate=0.1,
  ),
  'convnet': Images((32, 32, 3), 2000, 40, 'convnet'),
}


def dataset(model: str) -> str:
  """Returns the value of `--dataset` for a model's images."""
  return f'{__name__}:{model}'


def _arrays(name, num_clients):
  count, shape = num_clients * SHAPES[name].per_client, SHAPES[name].shape
  x = np.random.default_rng(0).integers(0, 256, (count, *shape), np.uint8)
  return x, (np.arange(count) % 10).astype(np.int32)


def _images(name):
  x, y = _arrays(name, SHAPES[name].num_clients)
  return data_lib.from_arrays('random', x, y, x[:100], y[:100])


# Data sets, each for the network of the same name.
resnet20, lenet5, lenet5_cifar10, pfl_cnn, convnet = (
  functools.partial(_images, name) for name in SHAPES
)


def count(config: Config) -> int:
  """Returns the number of training images of a config from `config`."""
  with np.load(config.dataset) as arrays:
    return len(arrays['y_train'])


def config(
  name: str, variant: str, num_workers: int, folder: str, num_clients: int = 0
) -> Config:
  """Writes images as an .npz data set; returns the config of a benchmark.

  Args:
    num_clients: Number of clients; 0 for that of the images.
  """
  images = SHAPES[name]
  num_clients = num_clients or images.num_clients
  x, y = _arrays(name, num_clients)
  path = pathlib.Path(folder, f'{name}.npz')
  np.savez(path, x_train=x, y_train=y, x_test=x[:100], y_test=y[:100])
  return Config(
    dataset=str(path),
    model=images.network,
    variant=variant,
    augment=images.augment,
    num_workers=num_workers,
    num_clients=num_clients,
    num_rounds=2,
    batch_size=images.batch_size,
    client_optimizer=images.optimizer,
    client_learning_rate=images.learning_rate,
    eval_every=2,
    num_mc_samples=1,
    final_num_mc_samples=1,
  )
