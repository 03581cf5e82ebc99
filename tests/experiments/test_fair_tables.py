"""Tests of tables of the comparison of all methods, on small rows."""

import numpy as np
import pytest

from experiments.papers.fair import tables


def _rows(**values):
  return [
    {'method': method, 'task': 'iid', 'seed': f'{seed}', 'nll': text}
    for method, texts in values.items()
    for seed, text in enumerate(texts)
  ]


def test_ranks_are_of_complete_methods_and_a_failed_run_is_last():
  rows = _rows(fedavg=['0.5', '0.4'], a=['0.4', ''], b=['0.4', '0.6'], c=['1'])
  found = tables.ranks(rows)
  assert {name: [*ranks] for name, ranks in found.items()} == {
    'fedavg': [3, 1], 'a': [1.5, 3], 'b': [1.5, 2],
  }  # fmt: skip


def test_the_critical_difference_equals_that_of_demsar():
  # Section 3.2.2 has an example with four methods on 14 data sets.
  found = tables.critical_difference(4, 14)
  assert found == pytest.approx(1.25, abs=0.005)


def test_only_a_clear_difference_from_fedavg_is_marked():
  noise = np.array([0.01, -0.02, 0.0, 0.02, -0.01])
  base = {f'{seed}': value for seed, value in enumerate(0.5 + noise)}
  lower = {seed: value - 0.2 - value / 100 for seed, value in base.items()}
  values = {'fedavg': base, 'lower': lower, 'same': {**base, '0': 0.52}}
  assert tables.differing(values) == {'lower'}


def test_a_cell_shows_mean_error_and_failures():
  rows = _rows(fedavg=['0.5', '0.7', ''])
  lines = [*tables.table(rows, tables.SCORES)]
  assert lines[2] == '| fedavg | 0.600 ± 0.100 (1 failed) |'
