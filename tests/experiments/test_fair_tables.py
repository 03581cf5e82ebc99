"""Tests of tables of the comparison of all methods, on small rows."""

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
  found = tables.losses(rows).rank()
  assert {name: [*ranks] for name, ranks in found.iterrows()} == {
    'fedavg': [3, 1], 'a': [1.5, 3], 'b': [1.5, 2],
  }  # fmt: skip


def test_kendalls_w_of_three_rankings_by_hand():
  # Sums of ranks 3, 7, 8: S = 14, and W = 12 S / (3^2 (3^3 - 3)).
  rows = _rows(a=['1', '1', '1'], b=['2', '2', '3'], c=['3', '3', '2'])
  found = tables.agreement(tables.losses(rows))
  assert found == pytest.approx(12 * 14 / (9 * 24))


def test_the_critical_difference_equals_that_of_demsar():
  # Section 3.2.2 has an example with four methods on 14 data sets.
  found = tables.critical_difference(4, 14)
  assert found == pytest.approx(1.25, abs=0.005)


def test_a_cell_shows_mean_error_and_failures():
  rows = _rows(fedavg=['0.5', '0.7', ''])
  lines = [*tables.table(rows, tables.SCORES)]
  assert lines[2] == '| fedavg | 0.600 ± 0.100 (1 failed) |'
