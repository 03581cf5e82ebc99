"""The cells of Makni 2022, by method (row) and data set (column)."""

from collections.abc import Callable, Mapping
from typing import Any

from experiments.harness import cells

_FEW = {'train_split': 'train[:10000]', 'test_split': 'test[:5000]'}
PAPER = cells.Paper(
  'fl_swag',
  citation='Makni 2022',
  scales={
    # Overnight scale is that of the paper, which takes minutes.
    'laptop': _FEW,
    'smoke': {
      **cells.SMALLEST,
      'num_server_examples': 400,
      'fine_tune.epochs': 1,
      'batch_size': 4,
      'interest.min_examples': 25,
    },
  },
  notes={
    'paper': 'The partition and data of the paper, and our own settings where '
    'the paper gives none (docs/results/fl_swag.md).',
    'overnight': 'The settings of the paper scale.',
    'laptop': 'The first 10 000 training images, or all features of a network.',
  },
)

SPLIT = 'noniid_interest_split_10_clients'
DATASETS = {
  f'{SPLIT} MNIST': 'mnist',
  f'{SPLIT} FashionMNIST': 'fashion_mnist',
}
CLIENTS = tuple(f'client {k + 1}' for k in range(10))
OVER_CLIENTS = ('worst client', 'mean client', 'best client')


def cell(name: str, dataset: str, overrides: Mapping[str, Any]) -> cells.Cell:
  """Returns a cell of logistic regression."""
  path = f'logistic/{dataset}/{name}'
  flags = {'dataset': dataset, **overrides}
  return cells.Cell(PAPER, path, flags, smallest(overrides))


def smallest(overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
  """Returns the overrides of a cell with samplers, by scale."""
  few = {'burn_in': 0, 'every': 1, 'num_samples': 2}
  if 'thinning.burn_in' not in overrides:
    return {}
  return {'smoke': {f'thinning.{name}': value for name, value in few.items()}}


def clients_of(swag: cells.Cell) -> dict[str, cells.Cell]:
  """Returns cells of single clients and of averages in FL-SWAG's run."""
  found = {name: swag.reading(name) for name in (*CLIENTS, *OVER_CLIENTS)}
  return {**found, 'BayAvg': swag.reading('C'), 'wBayAvg': swag.reading('wC')}


METHODS = {'FedAvg': 'fedavg', 'wFedAvg': 'wfedavg'}


def methods(
  make: Callable[[str, Mapping[str, Any]], cells.Cell],
  common: Mapping[str, Any],
  names: Mapping[str, str],
) -> dict[str, cells.Cell]:
  """Returns the cells of FL-SWAG, its clients and other methods, by row.

  Args:
    make: Function of a name and overrides.
    names: Names of other methods and of their flags, by row.
  """
  swag = make('fl-swag', common)
  others = {
    row: make(name, {**common, **PAPER.flags(name)})
    for row, name in names.items()
  }
  return {**clients_of(swag), 'FL-SWAG': swag, **others}


LOGISTIC = {
  (row, column): found
  for column, dataset in DATASETS.items()
  for row, found in methods(
    lambda name, flags, dataset=dataset: cell(name, dataset, flags),
    {},
    {**METHODS, 'Centralized': 'centralized'},
  ).items()
}

_MNIST = next(iter(DATASETS))
# Six rules on the same clients of MNIST.
RULES_ON_SWAG = {
  **{
    (row, 'mnist'): cell(f'rule_{row.lower()}', 'mnist', {'pooling': rule})
    for row, rule in cells.RULES.items()
  },
  ('Product', 'mnist'): LOGISTIC['FL-SWAG', _MNIST],
}
DIAGONAL = cell('diagonal', 'mnist', PAPER.flags('diagonal'))
