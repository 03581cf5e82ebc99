"""The board by Flower's own baseline of the day of its table, in PyTorch.

Network, local training and test are its code, out of a checkout; a loop over
clients stands in place of Ray, and images are cropped by the batch. Split and
images are those of `configs/board.flags` with `--seed=42`.

  git clone https://github.com/adap/flower && git -C flower checkout d86024fba4
  pip install torch
  python -m experiments.artifacts.board.flower_peer --checkout=flower \
    --method=fedavg --output=fedavg.csv
"""

import dataclasses
import importlib
import pathlib
import sys
import time

from absl import app, flags
import numpy as np
import torch
from torch.nn import functional

from bfl_tf.runs import rows as rows_lib
from experiments.artifacts.board import data

_CHECKOUT = flags.DEFINE_string('checkout', None, "Of Flower's.", required=True)
_OUTPUT = flags.DEFINE_string('output', None, 'A .csv.', required=True)
_METHOD = flags.DEFINE_enum('method', 'fedavg', ['fedavg', 'fedprox'], 'Which.')
_MU = flags.DEFINE_float('mu', 0.01, 'The proximal weight.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of weights, batches and crops.')
_NUM_ROUNDS = flags.DEFINE_integer('num_rounds', 50, 'Of 10 epochs.')
_SGD = {'learning_rate': 0.01, 'momentum': 0.9, 'weight_decay': 1e-5}


@dataclasses.dataclass(frozen=True)
class _Batches:
  """What a client trains on: shuffled, cropped and flipped anew each epoch."""

  padded: torch.Tensor
  y: torch.Tensor
  own: np.ndarray

  def __iter__(self):
    own = torch.from_numpy(self.own)
    channels, side = torch.arange(3)[:, None, None], torch.arange(32)
    for ids in own[torch.randperm(len(own))].split(64):
      rows, columns = torch.randint(9, (2, len(ids), 1)) + side
      flipped = torch.rand(len(ids), 1) < 0.5
      columns = torch.where(flipped, columns.flip(1), columns)
      rows, columns = rows[:, None, :, None], columns[:, None, None]
      images = self.padded[ids[:, None, None, None], channels, rows, columns]
      yield images.float().div(255), self.y[ids]


def main(_) -> None:
  """Plays the rounds; after each, the table of all so far is written."""
  sys.path.insert(0, f'{_CHECKOUT.value}/baselines/niid_bench')
  theirs = importlib.import_module('niid_bench.models')
  torch.set_num_threads(1)
  torch.manual_seed(_SEED.value)
  dataset = data.cifar10()
  clients = data.flower_2023(dataset.train.y, num_clients=10, seed=42)
  x, y = _tensors(dataset.train)
  padded = functional.pad(x, [4] * 4, mode='reflect').byte()
  test_x, test_y = _tensors(dataset.test)
  test = [*zip(test_x.div(255).split(1000), test_y.split(1000))]
  train = getattr(theirs, f'train_{_METHOD.value}')
  settings = {**_SGD, 'epochs': 10, 'device': torch.device('cpu')}
  if _METHOD.value == 'fedprox':
    settings['mu'] = _MU.value
  net = theirs.CNN(400, [120, 84], 10)
  state = {key: value.clone() for key, value in net.state_dict().items()}
  rows = []
  for number in range(_NUM_ROUNDS.value + 1):
    began = time.monotonic()
    if number:
      mean = {key: torch.zeros_like(value) for key, value in state.items()}
      for own in clients:
        net.load_state_dict(state)
        train(net, _Batches(padded, y, own), **settings)
        for key, value in net.state_dict().items():
          mean[key] += value * (len(own) / len(y))
      state = mean
    net.load_state_dict(state)
    nll, accuracy = theirs.test(net, test, settings['device'])
    rows.append({'round': number, 'accuracy': accuracy, 'nll': nll})
    rows_lib.write_csv(pathlib.Path(_OUTPUT.value), rows)
    seconds = time.monotonic() - began
    print(
      f'round {number}  accuracy {accuracy:.4f}  {seconds:.1f} s', flush=True
    )


def _tensors(split):
  """Returns bytes as floats, channels first, and classes."""
  images = torch.from_numpy(split.x).movedim(-1, 1).contiguous().float()
  return images, torch.from_numpy(split.y).long()


if __name__ == '__main__':
  app.run(main)
