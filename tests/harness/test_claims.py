"""Tests of claims, and by hand of Hall's test and of thresholds."""

import dataclasses
import math

from harness import made_runs
import numpy as np
import pytest
from scipy import stats
import toys

from bfl_tf.runs import significance
from experiments import papers
from experiments.harness import claims, hall


def _finish(compared, root, *values):
  for cell, of_seeds in zip(compared.cells, values):
    made_runs.finish_seeds(cell, root, *of_seeds)


def test_differences_match_hand_computed_values(tmp_path):
  claim = made_runs.claim(margin=1.0)
  _finish(claim, tmp_path, (0.25, 0.5, 0.75), (0.2, 0.4, 0.7))
  (result,) = claim.results('smoke', claims.of_runs('smoke', tmp_path))
  np.testing.assert_allclose(result.differences, [6.0, 11.0, 6.0])
  # Without a right side, the left one is compared with 0.
  claim = made_runs.claim(right=False)
  (result,) = claim.results('smoke', claims.of_runs('smoke', tmp_path))
  np.testing.assert_allclose(result.differences, [25.0, 50.0, 75.0])


def test_stored_values_give_the_verdict_of_the_runs(tmp_path):
  claim = made_runs.claim()
  _finish(claim, tmp_path, (0.25, 0.5, 0.752), (0.2, 0.4, 0.7))
  claims.write([claim], 'smoke', tmp_path)
  folder = tmp_path / 'smoke/posterior_pooling'
  text = (folder / 'claims.txt').read_text('utf-8')
  values = claims.stored('smoke', folder / 'claims.csv')
  claims.judge([claim], 'smoke', values, folder)
  assert (folder / 'claims.txt').read_text('utf-8') == text
  (row,) = toys.table(folder / 'verdicts.csv')
  # One of eight assignments of signs has such a large mean.
  assert float(row['p_sign_flip']) == pytest.approx(1 / 8)
  assert float(row['mean']) == pytest.approx((5 + 10 + 5.2) / 3)
  assert row['equivalent'] == 'False'


@pytest.mark.parametrize(
  ('differences', 'expected'),
  [((0.1, -0.1, 0.2), True), ((0.1, 0.9, -0.5), False), ((1, 1.1, 1.2), False)],
)
def test_a_small_difference_is_equivalent(differences, expected):
  # Student's test with two degrees of freedom, margin 0.5 points.
  (comparison,) = made_runs.claim().comparisons
  comparison = dataclasses.replace(comparison, equivalence=0.5)
  result = claims.Result(comparison, np.array(differences))
  assert result.is_equivalent == expected


def test_a_run_has_one_number_per_label():
  measures = {}
  for claim in papers.CLAIMS.values():
    for comparison in claim.comparisons:
      for cell in comparison.cells:
        key = claim.paper, cell.home('laptop'), cell.predictor
        known = measures.setdefault(
          (*key, comparison.measure.label), comparison
        )
        assert known.measure == comparison.measure


@pytest.mark.parametrize('reduce', [min, max])
def test_a_diverged_run_is_missing_after_any_reduction(tmp_path, reduce):
  sides = claims.Side(reduce, [*map(made_runs.cell, ('left', 'diverged'))])
  comparison = claims.Comparison('a statement', sides, None)
  _finish(comparison, tmp_path, (0.9, 0.8, 0.9), (0.9, 0.8, np.nan))
  values = claims.of_runs('smoke', tmp_path)
  found = [comparison.difference(values, seed) for seed in range(3)]
  assert np.isnan(found).tolist() == [False, False, True]


def _results(*differences):
  comparison = made_runs.claim().comparisons[0]
  return [claims.Result(comparison, np.array(d, float)) for d in differences]


UP, DOWN, EITHER = (1, 1.1, 0.9), (-1, -1.1, -0.9), (1, -1, 0.5)
# t = -3.46 at 2 degrees: p = 0.037, below 5 % and above 5 % / 2.
RATHER_DOWN = (-1, -2, -3)


@pytest.mark.parametrize(
  ('differences', 'expected'),
  [
    ((UP, UP), 'holds'),
    ((UP, EITHER), 'undecided'),
    ((EITHER, DOWN), 'does not hold'),
    ((RATHER_DOWN,), 'does not hold'),
    # For one of two tests, Holm's level is 5 % / 2.
    ((RATHER_DOWN, EITHER), 'undecided'),
    ((UP, (1, 1.1, np.nan)), 'undecided'),
    ((UP, (1, np.nan, np.nan)), 'no test'),
    ((DOWN, (1, np.nan, np.nan)), 'does not hold'),
    # The missing run may have diverged.
    (((-1, -1.01, np.nan),), 'undecided'),
  ],
)
def test_verdict_of_several_comparisons(differences, expected):
  assert claims.verdict(_results(*differences)) == expected


@pytest.mark.parametrize(
  ('size', 'num_tests', 'unit'), [(5, 1, 1e-11), (10, 4, 1e20)]
)
def test_the_p_value_of_the_threshold_is_the_level(size, num_tests, unit):
  skewed = unit * np.random.default_rng(0).exponential(size=size)
  for sign in (1, -1):
    threshold = hall.threshold(sign * skewed, num_tests)
    moved = hall.test(sign * (skewed - skewed.mean()) + threshold)
    assert moved.p_above == pytest.approx(significance.LEVEL / num_tests)


@pytest.mark.parametrize(
  ('value', 'size', 'threshold'),
  [(2.0, 3, math.inf), (-2.0, 5, 0.0), (0.0, 5, 0.0)],
)
def test_equal_differences_have_the_threshold_of_a_sign_test(
  value, size, threshold
):
  assert hall.threshold(np.full(size, value)) == threshold
  # 2^-5 is below 5 % and above 2.5 %.
  assert hall.threshold(np.full(size, value), 2) == math.inf


def test_ten_skewed_differences_have_the_larger_of_two_p_values():
  # Nine zeros and a one: mean 0.1, variance 0.1, third moment 0.1. Hall's
  # statistic is (0.1 + 0.1 / 6 + 0.1^3 / 0.03 + 0.1^5 / 0.0027) / 0.1, and t
  # is 1.
  test = hall.test(np.array([0.0] * 9 + [1.0]))
  above, below = stats.t.sf(1.0, 9), stats.t.cdf(1.5 + 1 / 27, 9)
  assert test == pytest.approx((above, below))
