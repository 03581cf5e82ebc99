"""The cells of Makni 2022, section 8: LeNet-5, shared features, samplers."""

import types

from experiments.harness import cells
from experiments.papers.fl_swag import grids

DATASETS = {
  f'{grids.SPLIT} {name} LeNet5': dataset
  for name, dataset in (('MNIST', 'mnist'), ('FashionMNIST', 'fashion_mnist'))
}
CIFAR10 = f'{grids.SPLIT} CIFAR10 ResNet18 features'
_FEATURES = {
  name: f'experiments.papers.fl_swag.shared:{name}'
  for name in (*DATASETS.values(), 'cifar10')
}
START = grids.PAPER.flags('shared_init')
_OWN_START = 'experiments.papers.fl_swag.independent_init:independent_init'
_FEW = {
  'num_server_examples': 2000,
  'thinning.burn_in': 1400,
  'thinning.every': 45,
}
# The samplers' prior is N(0, 1 / (d N)). With a sixth of the examples N, the
# weight decay d is six times as large.
_FEW_DECAY = 3e-3


def cell(name, dataset, overrides, laptop=types.MappingProxyType({})):
  """Returns a cell of LeNet-5."""
  # Only settings of the method are reduced.
  few = {key: value for key, value in _FEW.items() if key in overrides}
  if 'thinning.burn_in' in overrides:
    few['client_weight_decay'] = _FEW_DECAY
  return cells.Cell(
    grids.PAPER,
    f'lenet5/{dataset}/{name}',
    {'dataset': dataset, **overrides},
    {'laptop': {**few, **laptop}, **grids.smallest(overrides)},
  )


def _column(dataset):
  found = grids.methods(
    lambda name, flags: cell(name, dataset, flags), START, grids.METHODS
  )
  # Clients start from independent weights.
  for row in ('FL-SWAG', *grids.METHODS):
    is_swag, name = row == 'FL-SWAG', row.lower()
    flags = {
      **grids.PAPER.flags('lenet5', *[name] * (not is_swag)),
      'client_parts': (_OWN_START, *['swag'] * is_swag),
    }
    found[f'{row}, own starts'] = cell(
      f'independent_init/{name}', dataset, flags
    )
  return found


_SHARED = {
  **grids.PAPER.flags('shared_features'),
  # Data sets that a function returns have no slices.
  'train_split': 'train',
  'test_split': 'test',
}


def on_features(name, dataset, overrides, laptop=types.MappingProxyType({})):
  """Returns a cell of logistic regression on features of `dataset`."""
  return cells.Cell(
    grids.PAPER,
    f'features/{dataset}/{name}',
    {**_SHARED, 'dataset': _FEATURES[dataset], **overrides},
    {'laptop': dict(laptop), **grids.smallest(overrides)},
  )


# Selected by validation NLL on CIFAR-10's features (docs/results/fl_swag.md).
# The values of the presets are for MNIST.
_CHOSEN_ON_RESNET18 = {'client_learning_rate': 0.2, 'swag.min_scale': 0.1}
_RATES_ON_RESNET18 = {'SGLD': 0.2, 'pSGLD': 0.003}


def _features_of(dataset):
  return grids.methods(
    lambda name, flags: on_features(name, dataset, flags),
    _CHOSEN_ON_RESNET18 if dataset == 'cifar10' else {},
    {'FL-SWAG, diagonal': 'diagonal', **grids.METHODS},
  )


# The epochs and the prior of the presets, for 40 000 examples.
_SAMPLED = {
  'model': 'logistic',
  'client_weight_decay': 7.5e-4,
  'thinning.burn_in': 6250,
  'thinning.every': 200,
}


_OF_CIFAR10 = _features_of('cifar10')
DEEP = {
  (row, column): found
  for column, rows in {
    **{column: _column(dataset) for column, dataset in DATASETS.items()},
    CIFAR10: {
      row: found
      for row, found in _OF_CIFAR10.items()
      if row != 'FL-SWAG, diagonal'
    },
  }.items()
  for row, found in rows.items()
}
SAMPLERS = ('SGLD', 'pSGLD')
CALIBRATION = {
  **{
    (row, column): found
    for column, dataset in DATASETS.items()
    for row, found in {
      'FL-SWAG': DEEP['FL-SWAG', column],
      'FL-SWAG, diagonal': cell(
        'diagonal', dataset, {**START, **grids.PAPER.flags('diagonal')}
      ),
      **{
        row: cell(row.lower(), dataset, grids.PAPER.flags(row.lower()))
        for row in SAMPLERS
      },
    }.items()
  },
  **{
    (row, CIFAR10): _OF_CIFAR10[row] for row in ('FL-SWAG', 'FL-SWAG, diagonal')
  },
  **{
    (row, CIFAR10): on_features(
      row.lower(),
      'cifar10',
      {
        **grids.PAPER.flags(row.lower()),
        **_SAMPLED,
        'client_learning_rate': rate,
      },
    )
    for row, rate in _RATES_ON_RESNET18.items()
  },
}

FEATURES = tuple(DATASETS.values())
EPOCHS = (5, 20, 80)
SHARED_FEATURES = {
  (row, dataset): found
  for dataset in FEATURES
  for row, found in _features_of(dataset).items()
  if row not in grids.CLIENTS
}
# With few images, five epochs have too few periods for ten deviations.
_FEW_DEVIATIONS = {'swag.rank': 4}
# FL-SWAG on MNIST by local epochs, without weight decay.
BY_EPOCHS = {
  'shared_init': {
    epochs: cell(
      f'epochs{epochs}',
      'mnist',
      {**START, 'client_weight_decay': 0.0, 'local_epochs': epochs},
      _FEW_DEVIATIONS,
    )
    for epochs in EPOCHS
  },
  'shared_features': {
    epochs: on_features(
      f'epochs{epochs}',
      'mnist',
      {'client_weight_decay': 0.0, 'local_epochs': epochs},
      _FEW_DEVIATIONS,
    )
    for epochs in EPOCHS
  },
}
