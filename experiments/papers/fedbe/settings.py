"""Settings of the cells of Chen & Chao 2021 (FedBE).

A column is a split and a network, such as `step ConvNet`. Laptop scale replaces
ConvNet by a LeNet-5 on Fashion-MNIST, ResNets by shallow ResNets on CIFAR-10,
and MobileNetV2 by a ConvNet on CIFAR-10. Overnight scale keeps ConvNet and the
paper's images and student; clients train a quarter of the paper's epochs,
ResNets an eighth.
"""

from collections.abc import Mapping
from typing import Any

from experiments.harness import cells

STAND_INS = (
  'Smaller networks and data: LeNet-5 in place of ConvNet, on the first 10 000 '
  'images of Fashion-MNIST without augmentation. The ResNets 8, 14, 20 and 26 '
  'in place of 20, 32, 44 and 56, and ConvNet in place of MobileNetV2, on the '
  'first 5 000 images of CIFAR-10; their targets are not sharpened, and their '
  'students have 5 epochs with SWA cycles of 5 steps.'
)
DEPTHS = (
  'Smaller networks: the ResNets 8, 14, 20 and 26 in place of 20, 32, 44 and '
  '56, and ConvNet in place of MobileNetV2. Images and students as in the '
  'paper, but only 10 000 images of other data sets.'
)
PAPER = cells.Paper(
  'fedbe',
  citation='Chen & Chao 2021',
  scales={
    'laptop': {
      'dataset': 'fashion_mnist',
      'train_split': 'train[:10000]',
      'test_split': 'test[:5000]',
      # Flips and crops reduce the validation accuracy on Fashion-MNIST.
      'augment': False,
      'num_server_examples': 2000,
      # The paper's ratio of minor to major examples.
      'step.minor_examples': 2,
      'model': 'lenet5',
      'num_rounds': 10,
      'distil.swa_start': 50,
      'eval_every': 2,
      'num_eval_examples': 1000,
    },
    'overnight': {
      'num_rounds': 20,
      'local_epochs': 10,
      # Each evaluation scores twenty-two models.
      'num_eval_examples': 2000,
    },
    'smoke': {
      **cells.SMALLEST,
      'test_split': 'test',
      'num_server_examples': 100,
      'step.minor_examples': 2,
      'distil.epochs': 2,
      'distil.batch_size': 50,
      'distil.swa_start': 0,
      'distil.swa_cycle': 2,
    },
  },
  notes={
    'paper': 'The settings of the paper, and our own where the paper gives '
    'none (docs/results/fedbe.md). The major classes are random.',
    'overnight': f'{DEPTHS} 20 rounds of 10 epochs (ConvNet) or 5 epochs '
    '(ResNets), or one round of 200 epochs; centralized training has the same '
    'total number of epochs.',
    'laptop': f'{STAND_INS} 10 rounds of 20 epochs (LeNet-5) or 5 epochs '
    '(others); the server has 2 000 or 1 000 images.',
  },
)

SEEDS = {**cells.SEEDS, 'paper': range(5)}

# A network's settings, and further ones by scale.
_SHALLOW = {20: 8, 32: 14, 44: 20, 56: 26}
_SMALL = {
  'dataset': 'cifar10',
  'train_split': 'train[:5000]',
  'augment': True,
  'num_server_examples': 1000,
  'num_rounds': 10,
  'local_epochs': 5,
  # The ratio of student steps to client steps is the paper's. Sharpening harms
  # such a weak ensemble: with p^2, validation NLL rose from 1.93 to 2.86.
  'distil.sharpening': 1.0,
  'distil.epochs': 5,
  'distil.swa_start': 5,
  'distil.swa_cycle': 5,
}
_Settings = dict[str, Any]
NETWORKS: dict[str, tuple[_Settings, dict[str, _Settings]]] = {
  'ConvNet': ({}, {}),
  **{
    f'ResNet{depth}': (
      {'model': f'resnet{depth}', 'client_weight_decay': 2e-4},
      {
        'laptop': {'model': f'resnet{shallow}', **_SMALL},
        'overnight': {
          'model': f'resnet{shallow}',
          'num_rounds': 20,
          'local_epochs': 5,
        },
      },
    )
    for depth, shallow in _SHALLOW.items()
  },
  # The weight decay is ours: that of the other networks with batch norm.
  'MobileNetV2': (
    {'model': 'mobilenetv2', 'client_weight_decay': 2e-4, 'local_epochs': 10},
    {
      'laptop': {'model': 'convnet', **_SMALL},
      'overnight': {'model': 'convnet'},
    },
  ),
}
SPLITS: dict[str, dict[str, Any]] = {
  'step': {},
  'dirichlet_0.1': PAPER.flags('dirichlet'),
}
# Files of configs/fedbe after the preset; FedBE itself has none.
METHODS: dict[str, tuple[str, ...]] = {
  '1-Ensemble': ('one_ensemble',),
  'FedAvg': ('fedavg',),
  'v-Distillation': ('v_distillation',),
  'FedBE (w/o SWA)': ('fedbe_sgd',),
  'FedBE': (),
  'FedProx': ('fedavg', 'fedprox'),
  'FedBE+FedProx': ('fedprox',),
  'FedAvgM': ('fedavg', 'fedavgm'),
  'FedBE+FedAvgM': ('fedavgm',),
  'SCAFFOLD': ('fedavg', 'scaffold'),
  'FedBE+SCAFFOLD': ('scaffold',),
}


def flags(method: str) -> dict[str, Any]:
  """Returns the flags that a method adds to the preset."""
  return PAPER.flags(*METHODS[method])


_NAMES = str.maketrans(dict.fromkeys(' +()/=-:', '_'))


def cell(
  folder: str,
  column: str,
  row: str,
  overrides: Mapping[str, Any],
  network: str = 'ConvNet',
  **by_scale: Mapping[str, Any],
) -> cells.Cell:
  """Returns a cell.

  Args:
    overrides: Settings that replace those of the preset, at every scale.
    **by_scale: Further overrides by scale, after those of the network.
  """
  settings, own = NETWORKS[network]
  return cells.Cell(
    PAPER,
    '/'.join(part.translate(_NAMES).lower() for part in (folder, column, row)),
    {**settings, **overrides},
    {
      scale: {**own.get(scale, {}), **by_scale.get(scale, {})}
      for scale in cells.SCALES
    },
  )
