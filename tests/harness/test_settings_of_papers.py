"""Tests of the settings of the papers' cells."""

import pathlib

import numpy as np
import toys

from bfl_tf import data
from bfl_tf.data import partitions
from bfl_tf.federation.plan import Plan
from experiments.harness import cells
from experiments.papers import board, priors, validation_digits
from experiments.papers.board import data as data_lib

_ROOT = pathlib.Path(__file__).parents[2]


def _rows(*splits):
  return sorted(row.tobytes() for split in splits for row in split.x)


def test_the_prior_is_chosen_without_the_test_examples():
  whole, ours = data.load('digits'), validation_digits.digits()
  assert _rows(ours.train, ours.test) == _rows(whole.train)
  assert 0.19 < len(ours.test.y) / len(whole.train.y) < 0.21


def test_the_chosen_temperatures_have_the_lowest_nll():
  nll = {
    (row['row'], row['column']): float(row['mean'])
    for row in toys.table(_ROOT / 'results/priors/laptop/choosing.csv')
    if row['label'] == 'NLL (nats)'
  }
  for rule, pooling in cells.RULES.items():
    best = min(priors.TEMPERATURES, key=lambda name: nll[rule, name])
    chosen = {'flipout.temperature': priors.CHOSEN[pooling]}
    assert priors.TEMPERATURES[best] == chosen


def test_the_board_has_the_splits_and_the_network_of_the_public_code():
  labels = np.repeat(np.arange(10), 5000)
  for split, seed, smallest in (
    (data_lib.flower, 7, 1785),
    (data_lib.flower_2023, 7, 2920),
    (data_lib.niid_bench, 1, 1980),
  ):
    parts = split(labels, num_clients=10, seed=seed)
    assert abs(min(part.size for part in parts) - smallest) <= 5
    table = partitions.counts(labels, parts, 10)
    # Counts are rounded by class.
    full = np.cumsum(table, axis=1)[:, :-1] > 5001
    assert full.any() and not table[:, 1:][full].any()
  config = board.POINTS['FedAvg', 'IID'].config('paper', 0)
  lenet5 = Plan.of(config).network((32, 32, 3), 10)()
  assert lenet5.count_params() == 62_006
