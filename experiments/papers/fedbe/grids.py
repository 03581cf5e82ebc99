"""The cells of FedBE's tables, by method (row) and setting (column)."""

from experiments.papers.fedbe import settings


def _grid(folder, rows, networks, splits=('step',), **by_scale):
  """Returns cells by (row, `split network`)."""
  return {
    (row, f'{split} {network}'): settings.cell(
      folder,
      f'{split} {network}',
      row,
      {**settings.SPLITS[split], **flags},
      network,
      **by_scale,
    )
    for row, flags in rows.items()
    for split in splits
    for network in networks
  }


def _methods(*names):
  return {name: settings.flags(name) for name in names}


_SPLITS = tuple(settings.SPLITS)
_NETWORKS = ('ConvNet', 'ResNet20', 'ResNet32', 'ResNet44', 'ResNet56')
_TWO, _THREE = _NETWORKS[:2], _NETWORKS[:3]
FEDBE = ('FedAvg', 'v-Distillation', 'FedBE (w/o SWA)', 'FedBE')
_BESIDE = ('FedProx', 'FedBE+FedProx', 'FedAvgM', 'FedBE+FedAvgM')
MAIN = {
  **_grid(
    'methods',
    _methods('1-Ensemble'),
    _NETWORKS,
    _SPLITS,
    laptop={'num_rounds': 1, 'local_epochs': 40},
    overnight={'num_rounds': 1, 'local_epochs': 200},
  ),
  **_grid('methods', _methods(*FEDBE), _NETWORKS, _SPLITS),
}
CENTRALIZED = {
  ('SGD', f'centralized {network}'): settings.cell(
    'methods', f'centralized {network}', 'sgd',
    settings.PAPER.flags('centralized'),
    network,
    laptop={'num_rounds': 40, 'local_epochs': 1, 'num_server_examples': 0},
    # As many epochs as a client trains in total.
    overnight={
      'num_rounds': 200 if network == 'ConvNet' else 100, 'local_epochs': 1,
    },
    smoke={'num_server_examples': 0},
  )
  for network in _NETWORKS
}  # fmt: skip
COMPANIONS = _grid('methods', _methods(*_BESIDE), _NETWORKS, _SPLITS)
SCAFFOLD = _grid('methods', _methods('SCAFFOLD', 'FedBE+SCAFFOLD'), _THREE)

# Table 3: targets of the distillation.
_TEACHERS = ('A', 'S', 'A+S', 'A+C', 'C+S', 'A+C+S')
TARGETS = _grid(
  'targets',
  {
    **{row: {'distil.teachers': row} for row in _TEACHERS},
    'Ground-truth labels': settings.PAPER.flags('ground_truth'),
  },
  _TWO,
)

# Table 4: sources of unlabeled data. Smaller scales use the test split of
# CIFAR-100 and the validation split of Tiny-ImageNet.
UNLABELED = _grid('unlabeled', {'U=CIFAR-10 10K': {}}, _NETWORKS, _SPLITS)
for _row, _dataset, _at_hand in (
  ('U=CIFAR-100 50K', 'cifar100', 'test'),
  ('U=Tiny-ImageNet 100K', 'tiny_imagenet', 'validation'),
):
  UNLABELED |= _grid(
    'unlabeled',
    {_row: {'server_dataset': _dataset, 'resize': True}},
    _NETWORKS,
    _SPLITS,
    laptop={'server_split': f'{_at_hand}[:2000]'},
    overnight={'server_split': f'{_at_hand}[:10000]'},
    smoke={'server_dataset': 'digits', 'server_split': 'train'},
  )

# Tables 5 and 9: 100 clients, 10 of them per round.
_PARTIAL = {'num_clients': 100, 'clients_per_round': 10, 'num_rounds': 100}
_FEW = {
  'laptop': {
    'num_clients': 50,
    'num_rounds': 30,
    'step.classes_per_client': 2,
    'step.minor_examples': 1,
    'augment_padding': 2,
  },
  'overnight': {
    'dataset': 'cifar10',
    'test_split': 'test',
    'num_rounds': 50,
    'step.classes_per_client': 2,
    'augment_padding': 2,
  },
  'smoke': {
    'num_clients': 20,
    'clients_per_round': 5,
    'step.minor_examples': 1,
  },
}


def _partial(folder, column, method, network, overrides):
  # The network is replaced as at laptop scale, with the data of that scale.
  at_laptop = settings.NETWORKS[network][1].get('laptop', {})
  own = settings.PAPER.scales['laptop'] | at_laptop
  data = {key: own[key] for key in ('dataset', 'train_split', 'test_split')}
  laptop = {**data, **_FEW['laptop']}
  return settings.cell(
    folder, column, method,
    {**overrides, **_PARTIAL, **settings.flags(method)},
    network, **{**_FEW, 'laptop': laptop},
  )  # fmt: skip


_TINY = {
  'dataset': 'tiny_imagenet',
  'test_split': 'validation',
  'augment_padding': 4,
}
TINY = {
  (method, f'{split} {network}'): _partial(
    'tiny_imagenet', f'{split} {network}', method, network, {**_TINY, **how}
  )
  for method in ('FedAvg', 'FedBE')
  for split, how in {
    'iid': {'partition': 'iid'},
    'step': {'step.minor_examples': 1},
  }.items()
  for network in ('ResNet20', 'MobileNetV2')
}
CIFAR100 = {
  (method, f'cifar100_step_100_clients {network}'): _partial(
    'cifar100',
    f'step {network}',
    method,
    network,
    {
      'dataset': 'cifar100',
      'step.classes_per_client': 5,
      'step.minor_examples': 1,
    },
  )
  for method in ('FedAvg', 'FedBE')
  for network in _THREE
}

# Table 6: random numbers of local epochs.
HETEROGENEOUS = _grid(
  'heterogeneity',
  {
    method: settings.PAPER.flags('heterogeneity', *settings.METHODS[method])
    for method in ('FedAvg', 'FedProx', 'FedBE', 'FedBE+FedProx')
  },
  _THREE,
)

# Table 7: Eq. 7 in place of Eq. 5.
_ALPHAS = {
  f'alpha={alpha:g}': {
    'ensemble.posterior': 'dirichlet_weights',
    'dirichlet_weights.alpha': alpha,
  }
  for alpha in (0.1, 0.5, 1.0, 2.0)
}
DIRICHLET = {
  (f'Dirichlet {row}', column): cell
  for (row, column), cell in _grid('dirichlet', _ALPHAS, _TWO).items()
}

# Table 8: one run, so that all numbers are from the same clients.
ONE_ROUND = settings.cell(
  'one_round',
  'step ConvNet',
  'all',
  {
    'num_rounds': 1,
    'local_epochs': 200,
    'server_parts': ('experiments.papers.fedbe.students:students',),
    'students.students': ('C:sgd', 'C:swa', 'A+C+S:sgd', 'A+C+S:swa'),
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
  (row, f'step_one_round_ConvNet {column}'): ONE_ROUND.reading(predictor)
  for row, columns in _ROWS.items()
  for column, predictor in columns.items()
}

# Appendix C.5, and a baseline of ours: FedAvg whose batch normalization
# statistics are re-estimated on the same server data.
_NORMALIZATIONS = {'GN': {'resnet.normalization': 'group'}, 'BN': {}}
NORMALIZED = {
  (method, f'step_200_rounds_ResNet20 {column}'): settings.cell(
    'normalization',
    column,
    method,
    {**overrides, 'num_rounds': 200, **flags},
    'ResNet20',
  )
  for column, overrides in _NORMALIZATIONS.items()
  for method, flags in {
    'FedAvg': settings.PAPER.flags('fedavg'),
    'FedAvg, recalibrated': {
      **settings.PAPER.flags('fedavg'), 'batch_norm': 'recalibrate',
    },
    'FedBE': {},
  }.items()
  if (method, column) != ('FedAvg, recalibrated', 'GN')  # No statistics in GN.
}  # fmt: skip

# The same at every scale except smoke, since it takes seconds. The paper has an
# ensemble of 10 samples and selects the best of about 400.
SWISS_ROLL, SWISS_ROLL_MANY = (
  settings.cell(
    'swiss_roll',
    'majority',
    f'{num_samples} samples',
    {**settings.PAPER.flags('swiss_roll'), 'ensemble.num_samples': num_samples},
    laptop={
      'train_split': 'train',
      'test_split': 'test',
      'num_eval_examples': 0,
      'distil.swa_start': 250,
      'eval_every': 1,
    },
    overnight={'num_eval_examples': 0},
    smoke={
      'dataset': 'experiments.papers.fedbe.swiss_roll:swiss_roll',
      'num_clients': 3,
      'num_server_examples': 0,
      'local_epochs': 2,
    },
  )
  for num_samples in (10, 400)
)
WATCHED = {
  network: settings.cell(
    'watched',
    f'step {network}',
    'fedavg',
    settings.PAPER.flags('watched'),
    network,
  )
  for network in ('ConvNet', 'ResNet20')
}


# Appendix C.3: the ensemble at the end of FedAvg's training.
AFTERWARDS = {
  ('FedAvg', 'step ResNet20'): MAIN['FedAvg', 'step ResNet20'],
  ('Bayesian ensemble after FedAvg', 'step ResNet20'): (
    WATCHED['ResNet20'].reading('A+C+S')
  ),
  ('FedBE', 'step ResNet20'): MAIN['FedBE', 'step ResNet20'],
}
