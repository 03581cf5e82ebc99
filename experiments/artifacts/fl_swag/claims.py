"""What Makni 2022 claims of logistic regression; tests fixed beforehand."""

import statistics

from experiments.artifacts.fl_swag import grids, published
from experiments.harness import cells, claims, tables

_POINTS = cells.Measure('points of accuracy', published.accuracy, factor=100)
_ECE = cells.Measure('of ECE', cells.final('ece'))
_NAMES = {column: column.split()[-1] for column in grids.DATASETS}


def _claim(name, statement, comparisons):
  return claims.Claim(
    grids.PAPER, name, statement, tuple(comparisons), grids.SEEDS
  )


def _one(row, column):
  return claims.Side(claims.only, (grids.LOGISTIC[row, column],))


def _published(column):
  found = tables.published('fl_swag', 'table_logistic_regression')
  return found[column, 'FL-SWAG', 'accuracy_percent']


CLAIMS = (
  _claim(
    'averages_near_centralized',
    'Averages of weights or predictions are within 1.5 points of centralized '
    'logistic regression.',
    (
      claims.Comparison(
        f'{row} over centralized less 1.5 points, {name}',
        _one(row, column),
        _one('Centralized', column),
        _POINTS,
        1.5,
      )
      for column, name in _NAMES.items()
      for row in ('FedAvg', 'wFedAvg', 'BayAvg', 'wBayAvg')
    ),
  ),
  _claim(
    'beats_most_clients',
    'FL-SWAG is more accurate than most of its clients alone.',
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
  _claim(
    'as_accurate_as_published',
    'FL-SWAG is not more than a point below its published accuracy.',
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
    'one: less than half a point of ECE behind.',
    (
      claims.Comparison(
        "the diagonal product's ECE over the low-rank one's, MNIST",
        claims.Side(claims.only, (grids.DIAGONAL,)),
        claims.Side(claims.only, (grids.RULES_ON_SWAG['Product', 'mnist'],)),
        _ECE,
        0.005,
      ),
    ),
  ),
)
