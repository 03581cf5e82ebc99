"""A PyTorch loop over the batches of clients, for --case=peers."""

from collections.abc import Callable, Sequence
import os
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bfl_tf.config.config import Config


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns a label and a function that runs one round."""
  device = 'cuda' if torch.cuda.is_available() else 'cpu'
  torch.set_default_device(device)
  torch.set_num_threads(config.num_workers or len(os.sched_getaffinity(0)))
  x, y = (tensor.to(device) for tensor in examples(config))
  model = NETWORKS[config.model](x.shape[1:])
  start = {k: v.clone() for k, v in model.state_dict().items()}
  size = len(x) // config.num_clients

  def execute():
    trained = []
    for own in torch.arange(len(x)).split(size):
      model.load_state_dict(start)
      train(model, x, y, own, config)
      state = model.state_dict().items()
      trained.append({k: v.to('cpu', copy=True) for k, v in state})
    return {k: sum(each[k] for each in trained) / len(trained) for k in start}

  threads = torch.get_num_threads()
  return f'PyTorch {torch.__version__} ({device}, threads: {threads})', execute


def examples(config: Config) -> tuple[torch.Tensor, torch.Tensor]:
  """Returns uint8 images with channels first, and labels."""
  with np.load(config.dataset) as arrays:
    x = torch.tensor(np.moveaxis(arrays['x_train'], -1, 1).copy())
    return x, torch.tensor(arrays['y_train']).long()


def initial(settings: Any, x: np.ndarray) -> list[np.ndarray]:
  """Returns initial weights, for a Flower app."""
  return arrays_of(NETWORKS[settings.model](np.moveaxis(x, -1, 1).shape[1:]))


def fit(
  settings: Any, x: np.ndarray, y: np.ndarray, start: Sequence[np.ndarray]
) -> list[np.ndarray]:
  """Returns weights that are trained by a new model, for a Flower app."""
  torch.set_num_threads(settings.cpus)
  images = torch.tensor(np.moveaxis(x, -1, 1).copy())
  model = NETWORKS[settings.model](images.shape[1:])
  set_arrays(model, start)
  everything = torch.arange(len(x))
  train(model, images, torch.tensor(y).long(), everything, settings)
  return arrays_of(model)


def arrays_of(model: nn.Module) -> list[np.ndarray]:
  """Returns copies of the weights and buffers of a model."""
  return [v.numpy(force=True).copy() for v in model.state_dict().values()]


def set_arrays(model: nn.Module, arrays: Sequence[np.ndarray]) -> None:
  """Sets the weights and buffers of a model to those of `arrays_of`."""
  names = model.state_dict()
  model.load_state_dict(dict(zip(names, map(torch.as_tensor, arrays))))


def train(
  model: nn.Module,
  x: torch.Tensor,
  y: torch.Tensor,
  own: torch.Tensor,
  config: Any,
  fused: bool = False,
) -> None:
  """Trains one epoch on the examples with the indices `own`."""
  is_sgd = config.client_optimizer == 'sgd'
  make = torch.optim.SGD if is_sgd else torch.optim.Adam
  optimizer = make(
    model.parameters(), config.client_learning_rate, fused=fused or None
  )
  model.train()
  order = own[torch.randperm(len(own))]
  for batch in order.split(config.batch_size):
    images = _augmented(x[batch]) if config.augment else x[batch]
    optimizer.zero_grad()
    functional.cross_entropy(model(images.float() / 255), y[batch]).backward()
    optimizer.step()


def _augmented(x, padding=4):
  """Crops and flips each image, as `bfl_tf.data.preprocessing` does."""
  count, channels, height, width = x.shape
  offsets = torch.randint(2 * padding + 1, (2, count, 1))
  rows, columns = offsets[0] + torch.arange(height), torch.arange(width)
  flipped = torch.rand(count, 1) < 0.5
  columns = offsets[1] + torch.where(flipped, width - 1 - columns, columns)
  x = functional.pad(x, [padding] * 4)
  images = torch.arange(count)[:, None, None, None]
  layers = torch.arange(channels)[:, None, None]
  return x[images, layers, rows[:, None, :, None], columns[:, None, None]]


def _lenet5(shape):
  padding = 0 if shape[1] >= 32 else 2
  return nn.Sequential(
    *(nn.Conv2d(shape[0], 6, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
    nn.Linear(84, 10),
  )


def _resnet20(shape):
  plan = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2
  plan += [(32, 64, 2)] + [(64, 64, 1)] * 2
  return nn.Sequential(
    *(*_conv_norm(shape[0], 16, 1), nn.ReLU()),
    *(_Block(*each) for each in plan),
    *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
  )


def _conv_norm(before, filters, stride):
  conv = nn.Conv2d(before, filters, 3, stride, padding=1, bias=False)
  return conv, nn.BatchNorm2d(filters)


class _Block(nn.Module):
  """Two convolutions and a shortcut without parameters (option A)."""

  def __init__(self, before, filters, stride):
    super().__init__()
    self.body = nn.Sequential(
      *(*_conv_norm(before, filters, stride), nn.ReLU()),
      *_conv_norm(filters, filters, 1),
    )
    self.stride, self.extra = stride, filters - before

  def forward(self, x):
    y = x[..., :: self.stride, :: self.stride]
    y = functional.pad(y, (0, 0, 0, 0, 0, self.extra)) if self.extra else y
    return functional.relu(self.body(x) + y)


def _pfl_cnn(shape):
  side = (shape[1] - 4) // 2
  return nn.Sequential(
    *(nn.Conv2d(shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()),
    *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
    *(nn.Linear(64 * side**2, 128), nn.ReLU(), nn.Dropout(0.5)),
    nn.Linear(128, 10),
  )


NETWORKS = {
  'lenet5': _lenet5,
  'resnet20': _resnet20,
  'experiments.papers.pfl_research:cnn': _pfl_cnn,
}
