"""The tables: logistic regression (section 7.1), and rules on SWAG clients."""

import pathlib

import numpy as np

from experiments.artifacts.fl_swag import grids
from experiments.harness import cells, tables


def accuracy(directory: pathlib.Path, predictor: str) -> float:
  """Of a run's predictor, of a union, or of the client of that name."""
  if predictor not in grids.CLIENTS:
    return cells.final('accuracy')(directory, predictor)
  with np.load(directory / 'members.npz') as file:
    return float(file['correct_C'][grids.CLIENTS.index(predictor)].mean())


ACCURACY = cells.Measure(
  'Accuracy (%)', accuracy, 'accuracy_percent', factor=100
)
_NOTES = {
  'paper': "The paper's split and data; the rates are ours.",
  'overnight': 'As at paper scale.',
  'laptop': 'The first 10 000 training images.',
  'smoke': 'Digits, one epoch: only that it runs.',
}
_CALIBRATION = (
  ACCURACY,
  cells.NLL,
  cells.Measure('ECE', cells.final('ece'), digits=4),
  cells.Measure(
    'Factor (%)', cells.column('factor_fraction', lambda v: v[-1]), factor=100
  ),
)

TABLES = (
  tables.Table(
    grids.PAPER,
    'table_logistic_regression',
    'logistic regression',
    grids.LOGISTIC,
    (ACCURACY,),
    grids.SEEDS,
    _NOTES,
  ),
  tables.Table(
    grids.PAPER,
    'rules_on_swag',
    'six rules on the same SWAG clients, and what their factors hold of '
    "the clients' variance",
    grids.RULES_ON_SWAG,
    _CALIBRATION,
    grids.SEEDS,
    _NOTES,
  ),
)
