"""Tables of sections 7 and 8, and our tables of rules and features."""

import functools
import pathlib

import numpy as np

from bfl_tf import run_files
from experiments.harness import cells, tables
from experiments.papers.fl_swag import deep, grids

_OVER_CLIENTS = dict(zip(grids.OVER_CLIENTS, (np.min, np.mean, np.max)))


def accuracy(directory: pathlib.Path, predictor: str) -> float:
  """Returns the accuracy of a predictor, of a client, or over all clients."""
  if predictor not in (*grids.CLIENTS, *_OVER_CLIENTS):
    return cells.final('accuracy')(directory, predictor)
  with np.load(directory / run_files.MEMBERS) as file:
    alone = file['correct_C'].mean(-1)
  if predictor in _OVER_CLIENTS:
    return float(_OVER_CLIENTS[predictor](alone))
  return float(alone[grids.CLIENTS.index(predictor)])


ACCURACY = cells.Measure(
  'Accuracy (%)', accuracy, 'accuracy_percent', factor=100
)
_ON_FEATURES = (
  ACCURACY,
  cells.NLL,
  cells.Measure('ECE', cells.final('ece'), digits=4),
)
_CALIBRATION = (
  *_ON_FEATURES,
  cells.Measure(
    'Factor (%)', cells.column('factor_fraction', lambda v: v[-1]), factor=100
  ),
)

_SCORES = (
  ACCURACY,
  cells.Measure('ECE x 100', cells.final('ece'), 'ece_x100', 100),
  cells.Measure('Brier x 10', cells.final('brier'), 'brier_x10', 10),
  cells.Measure('NLL x 10', cells.final('nll'), 'nll_nats_x10', 10),
)
_table = functools.partial(tables.Table, grids.PAPER)


TABLES = (
  _table(
    'table_logistic_regression',
    'logistic regression',
    grids.LOGISTIC,
    (ACCURACY,),
  ),
  _table(
    'rules_on_swag',
    'six pooling rules on the same SWAG clients',
    grids.RULES_ON_SWAG,
    _CALIBRATION,
  ),
  _table(
    'table_deep',
    'LeNet-5 with shared and with independent starts; logistic '
    'regression on features of a ResNet-18',
    deep.DEEP,
    (ACCURACY,),
  ),
  _table(
    'table_calibration',
    'calibration, compared with centralized samplers',
    deep.CALIBRATION,
    _SCORES,
  ),
  _table(
    'shared_features',
    'logistic regression on 84 features of a pre-trained LeNet-5',
    deep.SHARED_FEATURES,
    _ON_FEATURES,
    note={'laptop': 'All images that did not train the LeNet-5.'},
  ),
)
