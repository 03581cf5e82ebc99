"""Tests of the comparison of all methods: tables and reference posterior."""

import numpy as np
import pandas
import pytest
import toys

from experiments.papers.fair import factor, reference, scores, tables
from experiments.reference_posteriors import distance


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


def test_statistics_of_rankings_by_hand():
  # Sums of ranks 3, 7, 8: S = 14, and Kendall's W = 12 S / (3^2 (3^3 - 3)).
  rows = _rows(a=['1', '1', '1'], b=['2', '2', '3'], c=['3', '3', '2'])
  found = tables.agreement(tables.losses(rows))
  assert found == pytest.approx(12 * 14 / (9 * 24))


def test_chains_predict_like_samples_of_a_nearly_gaussian_posterior(
  monkeypatch,
):
  monkeypatch.setattr(reference, '_NUM_SAMPLES', 400)
  rng = np.random.default_rng(0)
  x = rng.normal(size=[2000, 3]).astype(np.float32)
  y = (x @ rng.normal(size=[3, 3]) + rng.gumbel(size=[2000, 3])).argmax(1)
  # Far inputs, where the mean over the posterior differs from its mode.
  test = 30 * x[:200]
  with_one, test_with_one = (np.insert(each, 3, 1, 1) for each in (x, test))
  mode = reference._mode(with_one, y, 1.0)
  found, root = reference._draws(with_one, y, mode, 1.0)
  means = reference._means(found, root, mode, test_with_one)
  near = distance.laplace(x, y, 3)
  logs = distance.log_probabilities(near.sample(5000), test)
  expected = np.exp(logs).mean(0)
  at_mode = distance.log_probabilities(near.mean[np.newaxis], test)
  gap = distance.total_variation(np.exp(at_mode[0]), expected)
  assert distance.total_variation(means.mean(0), expected) < gap / 3


def test_predictions_are_compared_with_the_mean_by_seed():
  """NLL falls equally by samples, and not by linearized outputs."""
  nll = {'mean': [0.5, 0.7, 0.6], 'samples': [0.4, 0.601, 0.499]}
  nll['linearized'] = [0.4, 0.8, 0.6]
  columns = {f'nll_{mode}': values for mode, values in nll.items()}
  names = ('accuracy', 'ece', *factor._DETECTION)
  columns |= {f'{n}_{mode}': [0.5] * 3 for n in names for mode in factor.MODES}
  columns |= {'factor_samples': [0.1, 0.2, 0.1], 'factor_linearized': [1] * 3}
  rows = pandas.DataFrame({'method': 'laplace', **columns})
  _, _, row, _, of_samples, _ = factor.lines(rows)
  # The standard error is the standard deviation 0.1 divided by sqrt(3).
  wanted = '0.600 ± 0.058; 0.500 ± 0.058*; 0.600 ± 0.115'
  assert row.split(' | ')[1:4:2] == ['0.1 to 0.2; 1', wanted]
  assert of_samples.startswith('samples: a factor above 0 in 3 of 3 runs')
  _, _, row, *_ = factor.lines(rows[:1])  # One seed has no test.
  assert row.split(' | ')[3] == '0.500; 0.400; 0.400'


def test_a_chosen_rate_is_compared_with_those_of_its_optimizer():
  rates = {'adam': (0.001, 0.002), 'sgd': (0.01, 0.03, 0.1)}
  trials = [
    {'values': f'client_optimizer={name},client_learning_rate={rate}'}
    for name, of in rates.items()
    for rate in of
  ]
  places = [tables._place(each, trials) for each in trials]
  assert places == ['lowest', 'highest', 'lowest', '', 'highest']


def test_the_score_of_sets_replaces_no_score_of_all_examples():
  found = scores._sets(toys.blobs(), np.full([60, 3], 1 / 3, np.float32))
  assert found['size_0.9'] == 3 and found['coverage_0.9'] == 1
  assert not {'accuracy', 'nll', 'ece', 'num_examples'} & {*found}


def test_differences_from_the_baseline_are_means_over_common_seeds():
  rows = _rows(fedavg=['0.5', '0.7', '9'], a=['0.4', '0.2'])
  _, _, first, last = tables.table(rows, {'nll': tables.SCORES['nll']})
  # The differences -0.1 and -0.5 have the standard deviation 0.4 / sqrt(2).
  assert first == '| a | 0.300 ± 0.100 | -0.300 ± 0.200 |'
  assert last.endswith(' | - |')
