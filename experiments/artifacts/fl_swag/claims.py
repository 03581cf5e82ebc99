"""What Makni 2022 claims, and what we do of it.

Tests were fixed beforehand, but for that of `beats_every_client`.
"""

import functools
import itertools
import statistics

from experiments.artifacts.fl_swag import deep, grids, published
from experiments.harness import cells, claims, tables

_POINTS = cells.Measure('points of accuracy', published.accuracy, factor=100)
_ECE = cells.Measure('of ECE', cells.final('ece'))
_NAMES = {column: column.split()[-1] for column in grids.DATASETS}


def _claim(name, statement, comparisons, **more):
  return claims.Claim(
    grids.PAPER, name, statement, tuple(comparisons), cells.SEEDS, **more
  )


def _one(row, column):
  return grids.LOGISTIC[row, column]


def _published(column):
  found = tables.published('fl_swag', 'table_logistic_regression')
  return found[column, 'FL-SWAG', 'accuracy_percent']


_OWN_STARTS = tuple(
  f'{row}, own starts' for row in ('FL-SWAG', 'FedAvg', 'wFedAvg')
)


@functools.cache
def _clients(column):
  """The median client of FL-SWAG without a shared start, alone."""
  run = deep.DEEP[_OWN_STARTS[0], column]
  alone = grids.clients_of(run)
  return claims.Side(
    statistics.median, tuple(alone[name] for name in grids.CLIENTS)
  )


def _calibration(larger, smaller, dataset):
  columns = {name: column for column, name in deep.DATASETS.items()}
  column = {**columns, 'features of CIFAR-10': deep.CIFAR10}[dataset]
  left, right = (deep.CALIBRATION[row, column] for row in (larger, smaller))
  return claims.Comparison(
    f'{larger} over {smaller}, {dataset}', left, right, _ECE
  )


CLAIMS = (
  _claim(
    'averages_near_centralized',
    'Averages of weights or predictions are within 1.5 points of centralized '
    'logistic regression (ours, off the table of section 7.1, whose row '
    'CommonRes is taken for centralized training).',
    (
      claims.Comparison(
        f'{larger} over {smaller} less 1.5 points, {name}',
        _one(larger, column),
        _one(smaller, column),
        _POINTS,
        1.5,
      )
      for column, name in _NAMES.items()
      for row in ('FedAvg', 'wFedAvg', 'BayAvg', 'wBayAvg')
      for larger, smaller in ((row, 'Centralized'), ('Centralized', row))
    ),
  ),
  _claim(
    'beats_most_clients',
    'FL-SWAG is more accurate than its median client alone (in the paper: than '
    'most of them). The sixth of ten is above that, and above their average: '
    'over it the claim would fail by chance where all are alike.',
    (
      claims.Comparison(
        f'FL-SWAG over the median client, {name}',
        _one('FL-SWAG', column),
        claims.Side(
          statistics.median,
          tuple(grids.LOGISTIC[row, column] for row in grids.CLIENTS),
        ),
        _POINTS,
      )
      for column, name in _NAMES.items()
    ),
  ),
  # Written down when the tables of these cells had been seen.
  _claim(
    'beats_every_client',
    'FL-SWAG is more accurate than every client alone (section 10: it usually '
    'is), of logistic regression and of LeNet-5 with a shared start.',
    (
      claims.Comparison(
        f'FL-SWAG over the best client, {model}, {dataset}',
        grid['FL-SWAG', column],
        grid['best client', column],
        _POINTS,
      )
      for model, grid, columns in (
        ('logistic regression', grids.LOGISTIC, grids.DATASETS),
        ('LeNet-5', deep.DEEP, deep.DATASETS),
      )
      for column, dataset in columns.items()
    ),
    # Ahead in two of the four: MNIST 90.96 against 90.80, FashionMNIST 81.32
    # against 83.10; LeNet-5, 97.41 against 98.18 and 87.57 against 87.36.
    expected='does not hold',
  ),
  _claim(
    'as_accurate_as_published',
    'FL-SWAG is not more than a point below its published accuracy (ours).',
    (
      claims.Comparison(
        f'FL-SWAG over {_published(column):g} less a point, {name}',
        _one('FL-SWAG', column),
        None,
        _POINTS,
        1 - _published(column),
      )
      for column, name in _NAMES.items()
    ),
  ),
  _claim(
    'low_rank_is_calibrated',
    'The exact low-rank product is at least as well calibrated as the diagonal '
    'one: less than half a point of ECE behind (ours).',
    (
      claims.Comparison(
        "the diagonal product's ECE over the low-rank one's, MNIST",
        grids.DIAGONAL,
        grids.RULES_ON_SWAG['Product', 'mnist'],
        _ECE,
        0.005,
      ),
    ),
  ),
  _claim(
    'own_starts_collapse',
    'LeNet-5 without a shared start: averages in weight space collapse, 10 '
    'points or more below the median client.',
    (
      claims.Comparison(
        f'the median client over {row} less 10 points, {dataset}',
        _clients(column),
        deep.DEEP[row, column],
        _POINTS,
        -10.0,
      )
      for column, dataset in deep.DATASETS.items()
      for row in _OWN_STARTS
    ),
  ),
  _claim(
    'shared_start_helps',
    'LeNet-5 with a shared start: FL-SWAG is within a point of its best '
    'client (ours).',
    (
      claims.Comparison(
        f'FL-SWAG over the best client less a point, {dataset}',
        deep.DEEP['FL-SWAG', column],
        deep.DEEP['best client', column],
        _POINTS,
        1.0,
      )
      for column, dataset in deep.DATASETS.items()
    ),
  ),
  _claim(
    'calibrated_on_mnist',
    "On MNIST FL-SWAG's ECE is below SGLD's and pSGLD's.",
    (_calibration(row, 'FL-SWAG', 'mnist') for row in ('SGLD', 'pSGLD')),
  ),
  _claim(
    'not_calibrated_on_fashion_mnist',
    "On FashionMNIST FL-SWAG's ECE is above SGLD's and pSGLD's.",
    (
      _calibration('FL-SWAG', row, 'fashion_mnist') for row in ('SGLD', 'pSGLD')
    ),
  ),
  _claim(
    'between_on_cifar10_features',
    "On features of CIFAR-10 FL-SWAG's ECE is above SGLD's and below pSGLD's.",
    (
      _calibration('FL-SWAG', 'SGLD', 'features of CIFAR-10'),
      _calibration('pSGLD', 'FL-SWAG', 'features of CIFAR-10'),
    ),
  ),
  _claim(
    'epochs_drift',
    'Over local epochs 5, 20, 80 pooled accuracy falls with a shared start, '
    'and moves less on shared features; MNIST, the former at a rate of 0.01, '
    'the latter at 0.05.',
    (
      *(
        claims.Comparison(
          f'{fewer} epochs over {more}, shared start',
          deep.BY_EPOCHS['shared_init'][fewer],
          deep.BY_EPOCHS['shared_init'][more],
          _POINTS,
        )
        for fewer, more in itertools.pairwise(deep.EPOCHS)
      ),
      claims.Comparison(
        'spread over epochs, shared start over shared features',
        *(
          claims.Side(claims.spread, tuple(by_epochs.values()))
          for by_epochs in deep.BY_EPOCHS.values()
        ),
        _POINTS,
      ),
    ),
  ),
)
