"""Claims of Makni 2022, and our own claims about it.

All tests were fixed in advance, except that of `beats_every_client`.
"""

import functools
import statistics

from experiments.harness import cells, claims, tables
from experiments.papers.fl_swag import deep, grids, published

_POINTS = cells.Measure('points of accuracy', published.accuracy, factor=100)
_ECE = cells.Measure('of ECE', cells.final('ece'))
_AVERAGES = ('FedAvg', 'wFedAvg', 'BayAvg', 'wBayAvg')
_OWN_STARTS = tuple(
  f'{row}, own starts' for row in ('FL-SWAG', 'FedAvg', 'wFedAvg')
)
_CALIBRATED = {
  **deep.CALIBRATION,
  ('low-rank product', 'mnist'): grids.RULES_ON_SWAG['Product', 'mnist'],
  ('diagonal product', 'mnist'): grids.DIAGONAL,
}
_MNIST, _FASHION_MNIST = deep.DATASETS


def _published(column):
  found = tables.published('fl_swag', 'table_logistic_regression')
  return found[column, 'FL-SWAG', 'accuracy_percent']


def _median(alone):
  return claims.Side(
    statistics.median, tuple(alone[name] for name in grids.CLIENTS)
  )


_LOGISTIC = grids.LOGISTIC | {
  ('the median client', column): _median(
    {row: grids.LOGISTIC[row, column] for row in grids.CLIENTS}
  )
  for column in grids.DATASETS
}
# The median client is that of FL-SWAG without a shared start.
_DEEP = deep.DEEP | {
  ('the median client', column): _median(
    grids.clients_of(deep.DEEP[_OWN_STARTS[0], column])
  )
  for column in deep.DATASETS
}
_EPOCHS = {
  (f'{epochs} epochs', 'shared start'): cell
  for epochs, cell in deep.BY_EPOCHS['shared_init'].items()
}
_over = claims.over
_claim = functools.partial(claims.Claim, grids.PAPER)

CLAIMS = (
  _claim(
    'averages_near_centralized',
    'Logistic regression: averages of weights or predictions and centralized '
    'training differ by less than 1.5 points. (Ours, from the table of '
    'section 7.1. We assume that its row CommonRes is centralized training.)',
    _over(_LOGISTIC, _AVERAGES, 'Centralized', _POINTS, 1.5, grids.DATASETS)
    + _over(_LOGISTIC, 'Centralized', _AVERAGES, _POINTS, 1.5, grids.DATASETS),
  ),
  _claim(
    'beats_most_clients',
    'FL-SWAG is more accurate than the median client. (The paper: than most '
    'clients.)',
    _over(
      _LOGISTIC, 'FL-SWAG', 'the median client', _POINTS, where=grids.DATASETS
    ),
  ),
  # This test was defined after the tables of its cells were known.
  _claim(
    'beats_every_client',
    'FL-SWAG is more accurate than every client, for logistic regression and '
    'for LeNet-5 with a shared start. (Section 10: it usually is.)',
    _over(_LOGISTIC, 'FL-SWAG', 'best client', _POINTS, where=grids.DATASETS)
    + _over(_DEEP, 'FL-SWAG', 'best client', _POINTS, where=deep.DATASETS),
    # Published FL-SWAG is ahead in two of four cases: MNIST 90.96 against
    # 90.80, FashionMNIST 81.32 against 83.10; LeNet-5, 97.41 against 98.18 and
    # 87.57 against 87.36.
    expected='does not hold',
  ),
  _claim(
    'as_accurate_as_published',
    'FL-SWAG is at most one point less accurate than published (ours).',
    [
      claims.Comparison(
        f'FL-SWAG minus {_published(column):g}, {column}',
        _LOGISTIC['FL-SWAG', column],
        None,
        _POINTS,
        1 - _published(column),
      )
      for column in grids.DATASETS
    ],
  ),
  _claim(
    'low_rank_is_calibrated',
    'The exact low-rank product is at least as well calibrated as the '
    'diagonal product: its ECE is less than 0.005 higher (ours).',
    _over(
      _CALIBRATED, 'diagonal product', 'low-rank product', _ECE, 0.005, 'mnist'
    ),
  ),
  _claim(
    'own_starts_collapse',
    'LeNet-5 with independent starts: averages of weights are at least 10 '
    'points less accurate than the median client.',
    _over(
      _DEEP, 'the median client', _OWN_STARTS, _POINTS, -10.0, deep.DATASETS
    ),
  ),
  _claim(
    'shared_start_helps',
    'LeNet-5 with a shared start: FL-SWAG is at most one point less accurate '
    'than the best client (ours).',
    _over(_DEEP, 'FL-SWAG', 'best client', _POINTS, 1.0, deep.DATASETS),
  ),
  _claim(
    'calibrated_on_mnist',
    'MNIST: the ECE of FL-SWAG is lower than that of SGLD and pSGLD.',
    _over(_CALIBRATED, deep.SAMPLERS, 'FL-SWAG', _ECE, where=_MNIST),
  ),
  _claim(
    'not_calibrated_on_fashion_mnist',
    'Fashion-MNIST: the ECE of FL-SWAG is higher than that of SGLD and pSGLD.',
    _over(_CALIBRATED, 'FL-SWAG', deep.SAMPLERS, _ECE, where=_FASHION_MNIST),
  ),
  _claim(
    'between_on_cifar10_features',
    'Features of CIFAR-10: the ECE of FL-SWAG is higher than that of SGLD and '
    'lower than that of pSGLD.',
    _over(_CALIBRATED, 'FL-SWAG', 'SGLD', _ECE, where=deep.CIFAR10)
    + _over(_CALIBRATED, 'pSGLD', 'FL-SWAG', _ECE, where=deep.CIFAR10),
  ),
  _claim(
    'epochs_drift',
    'MNIST: with a shared start (learning rate 0.01), the pooled accuracy '
    'falls from 5 to 20 and from 20 to 80 local epochs. With shared features '
    '(learning rate 0.05), it changes less.',
    [
      *_over(_EPOCHS, '5 epochs', '20 epochs', _POINTS, where='shared start'),
      *_over(_EPOCHS, '20 epochs', '80 epochs', _POINTS, where='shared start'),
      claims.Comparison(
        'spread over epochs, shared start minus shared features',
        *(
          claims.Side(claims.spread, tuple(by_epochs.values()))
          for by_epochs in deep.BY_EPOCHS.values()
        ),
        _POINTS,
      ),
    ],
  ),
)
