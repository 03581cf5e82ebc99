"""Random images for benchmarks: what they show changes no arithmetic."""

import numpy as np

from bfl_tf import datasets

# Input shape, examples a client, batch size.
SHAPES = {
  'resnet20': ((32, 32, 3), 512, 32),
  'lenet5': ((28, 28, 1), 4000, 40),
  'convnet': ((32, 32, 3), 2000, 40),
}


def dataset(model: str) -> str:
  """Returns what `--dataset` says for a model's images."""
  return f'{__name__}:{model}'


def resnet20() -> datasets.Dataset:
  """Ten clients' worth for a ResNet-20."""
  return _images('resnet20')


def lenet5() -> datasets.Dataset:
  """Ten clients' worth for a LeNet-5."""
  return _images('lenet5')


def convnet() -> datasets.Dataset:
  """Ten clients' worth for a ConvNet."""
  return _images('convnet')


def _images(name):
  shape, per_client, _ = SHAPES[name]
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (10 * per_client, *shape), np.uint8)
  y = (np.arange(len(x)) % 10).astype(np.int32)
  return datasets.from_arrays('random', x, y, x[:100], y[:100])
