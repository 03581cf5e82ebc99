"""The cells of Chen & Chao 2021 (FedBE), by method (row) and setting (column).

A column is a split and a network: `step ConvNet`. At laptop scale ConvNet's
columns are a LeNet-5 on Fashion-MNIST, a ResNet's a shallow ResNet on CIFAR-10.
"""

from collections.abc import Mapping
from typing import Any

from experiments.harness import cells

PAPER = cells.Paper(
  'fedbe',
  scales={
    'paper': {},
    'laptop': {
      'dataset': 'fashion_mnist',
      'train_split': 'train[:10000]',
      'test_split': 'test[:5000]',
      'num_server_examples': 2000,
      # As many to a major one as in the paper.
      'minor_examples': 2,
      'model': 'lenet5',
      'num_rounds': 20,
      'local_epochs': 10,
      'swa_start': 50,
      'eval_every': 2,
      'num_eval_examples': 1000,
    },
    'smoke': {
      'dataset': 'digits',
      'test_split': 'test',
      'augment': False,
      'num_server_examples': 100,
      'minor_examples': 2,
      'model': 'mlp',
      'hidden_units': (8,),
      'num_rounds': 1,
      'local_epochs': 1,
      'num_teacher_samples': 2,
      'distillation_epochs': 2,
      'distillation_batch_size': 50,
      'swa_start': 0,
      'swa_cycle': 2,
    },
  },
)

SEEDS = {'paper': 5, 'laptop': 3, 'smoke': 1}
FEWER = {**SEEDS, 'paper': 3}
MORE = {'paper': 10, 'laptop': 10, 'smoke': 1}

# A network's settings, and those at laptop scale.
_SHALLOW = {20: 8, 32: 14, 44: 20, 56: 26}
_SMALL = {
  'dataset': 'cifar10',
  'train_split': 'train[:5000]',
  'num_server_examples': 1000,
  'num_rounds': 10,
  'local_epochs': 5,
}
NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
  'ConvNet': ({}, {}),
  **{
    f'ResNet{depth}': (
      {'model': f'resnet{depth}', 'client_weight_decay': 2e-4},
      {'model': f'resnet{shallow}', **_SMALL},
    )
    for depth, shallow in _SHALLOW.items()
  },
}
SPLITS: dict[str, dict[str, Any]] = {
  'step': {},
  'dirichlet_0.1': PAPER.flags('dirichlet'),
}
# Files of configs/fedbe behind the preset; none: FedBE itself.
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
    folder: of its name.
    column: likewise.
    row: likewise.
    overrides: of the preset, at every scale.
    network: one of `NETWORKS`.
    **by_scale: further overrides at `laptop` or `smoke`.
  """
  settings, at_laptop = NETWORKS[network]
  return cells.Cell(
    PAPER,
    '/'.join(part.translate(_NAMES).lower() for part in (folder, column, row)),
    {**settings, **overrides},
    {
      'laptop': {**at_laptop, **by_scale.get('laptop', {})},
      # What a smoke run is made of comes last: it must stay small.
      'smoke': {**PAPER.scales['smoke'], **by_scale.get('smoke', {})},
    },
  )


def _grid(methods, splits, networks, **by_scale):
  """Cells by (method, `split network`)."""
  return {
    (method, f'{split} {network}'): cell(
      'methods',
      f'{split} {network}',
      method,
      {**SPLITS[split], **PAPER.flags(*METHODS[method])},
      network,
      **by_scale.get(method, {}),
    )
    for method in methods
    for split in splits
    for network in networks
  }


_ALL_SPLITS, _ALL_NETWORKS = tuple(SPLITS), tuple(NETWORKS)
_ONE_SHOT = {
  '1-Ensemble': {'laptop': {'num_rounds': 1, 'local_epochs': 40}},
}
MAIN = _grid(
  ('1-Ensemble', 'FedAvg', 'v-Distillation', 'FedBE (w/o SWA)', 'FedBE'),
  _ALL_SPLITS,
  _ALL_NETWORKS,
  **_ONE_SHOT,
)
CENTRALIZED = {
  ('SGD', f'centralized {network}'): cell(
    'methods', f'centralized {network}', 'sgd', PAPER.flags('centralized'),
    network, laptop={'num_rounds': 40, 'num_server_examples': 0},
  )
  for network in _ALL_NETWORKS
}  # fmt: skip
COMPANIONS = _grid(
  ('FedProx', 'FedBE+FedProx', 'FedAvgM', 'FedBE+FedAvgM'),
  _ALL_SPLITS,
  _ALL_NETWORKS,
)
SCAFFOLD = _grid(
  ('SCAFFOLD', 'FedBE+SCAFFOLD'), ('step',), ('ConvNet', 'ResNet20', 'ResNet32')
)

# Table 3: what is distilled.
TARGETS = {
  (row, f'step {network}'): (
    MAIN['FedBE', f'step {network}']
    if row == 'S+A+C'
    else cell('targets', f'step {network}', row, overrides, network)
  )
  for row, overrides in {
    **{
      row: {'teachers': tuple(sorted(row.split('+')))}
      for row in ('A', 'S', 'S+A', 'A+C', 'S+C', 'S+A+C')
    },
    'Ground-truth labels': PAPER.flags('ground_truth'),
  }.items()
  for network in ('ConvNet', 'ResNet20')
}

# Table 4: whose images. What is here of CIFAR-100 and of Tiny-ImageNet are
# their test and validation splits; any one serves as unlabeled data.
_DOMAINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
  'U=CIFAR-10 10K': ({}, {}),
  'U=CIFAR-100 50K': (
    {'server_dataset': 'cifar100'},
    {'server_split': 'test[:2000]'},
  ),
  'U=Tiny-ImageNet 100K': (
    {'server_dataset': 'tiny_imagenet'},
    {'server_split': 'validation[:2000]'},
  ),
}
UNLABELED = {
  (row, f'{split} {network}'): (
    MAIN['FedBE', f'{split} {network}']
    if not overrides
    else cell(
      'unlabeled',
      f'{split} {network}',
      row,
      {**SPLITS[split], **overrides, 'resize': True},
      network,
      laptop=at_laptop,
      smoke={'server_dataset': 'digits', 'server_split': 'train'},
    )
  )
  for row, (overrides, at_laptop) in _DOMAINS.items()
  for split in _ALL_SPLITS
  for network in _ALL_NETWORKS
}

# Tables 5 and 9: 100 clients, 10 of them a round.
_PARTIAL = {'num_clients': 100, 'clients_per_round': 10, 'num_rounds': 100}
_FEW = {
  'laptop': {'num_clients': 50, 'minor_examples': 1, 'num_rounds': 40},
  'smoke': {'num_clients': 20, 'clients_per_round': 5, 'minor_examples': 1},
}


def _partial(folder, column, method, network, overrides):
  # What a network's column is at laptop scale elsewhere has too few images.
  laptop = {**PAPER.scales['laptop'], **_FEW['laptop']}
  return cell(
    folder, column, method,
    {**overrides, **_PARTIAL, **PAPER.flags(*METHODS[method])},
    network, laptop=laptop, smoke=_FEW['smoke'],
  )  # fmt: skip


NETWORKS['MobileNetV2'] = ({'model': 'mobilenetv2', 'local_epochs': 10}, {})
_TINY = {
  'dataset': 'tiny_imagenet',
  'test_split': 'validation',
  'augment_padding': 4,
}
TINY = {
  (method, f'{split} {network}'): _partial(
    'tiny_imagenet',
    f'{split} {network}',
    method,
    network,
    {**_TINY, **how},
  )
  for method in ('FedAvg', 'FedBE')
  for split, how in {
    'iid': {'partition': 'iid'},
    'step': {'minor_examples': 1},
  }.items()
  for network in ('ResNet20', 'MobileNetV2')
}
CIFAR100 = {
  (method, f'cifar100_step_100_clients {network}'): _partial(
    'cifar100',
    f'step {network}',
    method,
    network,
    {'dataset': 'cifar100', 'classes_per_client': 5, 'minor_examples': 1},
  )
  for method in ('FedAvg', 'FedBE')
  for network in ('ConvNet', 'ResNet20', 'ResNet32')
}

# Table 6: epochs drawn.
HETEROGENEOUS = {
  (method, f'step {network}'): cell(
    'heterogeneity',
    f'step {network}',
    method,
    PAPER.flags('heterogeneity', *METHODS[method]),
    network,
  )
  for method in ('FedAvg', 'FedProx', 'FedBE', 'FedBE+FedProx')
  for network in ('ConvNet', 'ResNet20', 'ResNet32')
}

# Table 7: Eq. 7 in place of Eq. 5.
DIRICHLET = {
  (f'Dirichlet alpha={alpha:g}', f'step {network}'): cell(
    'dirichlet',
    f'step {network}',
    f'alpha_{alpha:g}',
    {'teacher_posterior': 'dirichlet', 'dirichlet_alpha': alpha},
    network,
  )
  for alpha in (0.1, 0.5, 1.0, 2.0)
  for network in ('ConvNet', 'ResNet20')
}

# Table 8: one run, all of whose numbers come from the same clients.
ONE_ROUND = cell(
  'one_round',
  'step ConvNet',
  'all',
  {
    'num_rounds': 1,
    'local_epochs': 200,
    'refine': ('students',),
    'students': ('C:sgd', 'C:swa', 'A+C+S:sgd', 'A+C+S:swa'),
  },
  laptop={'num_rounds': 1, 'local_epochs': 40},
)
_ROWS = {
  'Weight average': {'no distillation': 'A'},
  'Model ensemble': {'no distillation': 'C', 'SGD': 'C:sgd', 'SWA': 'C:swa'},
  'Bayesian model ensemble': {
    'no distillation': 'A+C+S',
    'SGD': 'A+C+S:sgd',
    'SWA': 'A+C+S:swa',
  },
}
TABLE8 = {
  (row, f'step_one_round_ConvNet {column}'): ONE_ROUND.reading(
    f'one_round/{predictor}', predictor
  )
  for row, columns in _ROWS.items()
  for column, predictor in columns.items()
}

# Appendix C.5; and the rival that the paper does not have: FedAvg whose
# statistics are re-estimated on the same server data.
_NORMALIZATIONS = {'GN': {'normalization': 'group'}, 'BN': {}}
NORMALIZED = {
  (method, f'step_200_rounds_ResNet20 {column}'): cell(
    'normalization',
    column,
    method,
    {**overrides, 'num_rounds': 200, **flags},
    'ResNet20',
  )
  for column, overrides in _NORMALIZATIONS.items()
  for method, flags in {
    'FedAvg': PAPER.flags('fedavg'),
    'FedAvg, recalibrated': {
      **PAPER.flags('fedavg'), 'batch_norm': 'recalibrate',
    },
    'FedBE': {},
  }.items()
}  # fmt: skip

# The same at laptop scale: it takes seconds. Ten samples vote, as in the paper;
# its best is picked of as many as its simplex shows.
SWISS_ROLL, SWISS_ROLL_MANY = (
  cell(
    'swiss_roll',
    'majority',
    f'{num_samples} samples',
    {**PAPER.flags('swiss_roll'), 'num_teacher_samples': num_samples},
    laptop={
      'train_split': 'train',
      'test_split': 'test',
      'num_eval_examples': 0,
      'swa_start': 250,
      'eval_every': 1,
    },
    smoke={
      'dataset': 'swiss_roll',
      'num_clients': 3,
      'num_server_examples': 0,
    },
  )
  for num_samples in (10, 400)
)
WATCHED = {
  network: cell(
    'watched', f'step {network}', 'fedavg', PAPER.flags('watched'), network
  )
  for network in ('ConvNet', 'ResNet20')
}
