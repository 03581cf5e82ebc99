"""The cells of Makni 2022, by method (row) and data set (column)."""

from experiments.harness import cells

_FEW = {'train_split': 'train[:10000]', 'test_split': 'test[:5000]'}
PAPER = cells.Paper(
  'fl_swag',
  citation='Makni 2022',
  scales={
    'paper': {},
    # The paper's own takes minutes.
    'overnight': {},
    'laptop': _FEW,
    'smoke': {
      'dataset': 'digits',
      'local_epochs': 1,
      'batch_size': 4,
      'interest.min_examples': 25,
      'swag.period': 1,
      'swag.burn_in': 0.0,
      'swag.rank': 2,
      'ensemble.num_samples': 2,
    },
  },
)
SEEDS = {'paper': 3, 'overnight': 3, 'laptop': 3, 'smoke': 1}
NUM_CLIENTS = 10

_SPLIT = 'noniid_interest_split_10_clients'
DATASETS = {
  f'{_SPLIT} MNIST': 'mnist',
  f'{_SPLIT} FashionMNIST': 'fashion_mnist',
}
CLIENTS = tuple(f'client {k + 1}' for k in range(NUM_CLIENTS))


def _cell(row, column, overrides):
  # What the smallest scale sets is for every method.
  dataset = DATASETS[column]
  return cells.Cell(
    PAPER,
    f'logistic/{dataset}/{row.lower()}',
    {'dataset': dataset, **overrides},
    {'smoke': {'dataset': 'digits'}},
  )


def _logistic(column):
  swag = _cell('FL-SWAG', column, {})
  alone = {name: swag.reading(f'{swag.name}/{name}', name) for name in CLIENTS}
  return {
    **alone,
    'FL-SWAG': swag,
    **{
      row: _cell(row, column, PAPER.flags(row.lower()))
      for row in ('FedAvg', 'wFedAvg')
    },
    'BayAvg': swag.reading(f'{swag.name}/C', 'C'),
    'wBayAvg': swag.reading(f'{swag.name}/wC', 'wC'),
    'Centralized': _cell('Centralized', column, PAPER.flags('centralized')),
  }


LOGISTIC = {
  (row, column): cell
  for column in DATASETS
  for row, cell in _logistic(column).items()
}

RULES = {
  'NWA': 'nwa',
  'WS': 'ws',
  'LP': 'lp',
  'WC': 'wc',
  'Conflation': 'conflation',
}
_MNIST = next(iter(DATASETS))
# Six rules on the same clients; on MNIST.
RULES_ON_SWAG = {
  **{
    (row, 'mnist'): _cell(f'rule_{row}', _MNIST, {'pooling': rule})
    for row, rule in RULES.items()
  },
  ('Product', 'mnist'): LOGISTIC['FL-SWAG', _MNIST],
}
DIAGONAL = _cell('diagonal', _MNIST, PAPER.flags('diagonal'))
