"""Tests of Student's test and Holm's correction, by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from bfl_tf.runs import significance


def test_students_test_matches_hand_computed_values():
  # Mean 2, standard deviation 1: t = 2 x 3^0.5 = 3.464. With 2 degrees of
  # freedom, P(T > t) = 1/2 - t / (2 (2 + t^2)^0.5).
  test = significance.student(np.array([1.0, 2.0, 3.0]))
  assert test.mean == 2 and test.degrees_of_freedom == 2
  assert test.standard_error == pytest.approx(3**-0.5)
  assert test.p_above == pytest.approx(0.5 - 12**0.5 / (2 * 14**0.5))
  assert test.p_below == pytest.approx(1 - test.p_above)
  # The 5 % quantile in tables is 2.920.
  threshold = significance.threshold(np.array([1.0, 2.0, 3.0]))
  assert threshold == pytest.approx(2.920 * 3**-0.5, abs=5e-4)


@pytest.mark.parametrize('num_tests', [1, 4])
@pytest.mark.parametrize('size', [5, 10])
def test_the_p_value_of_the_threshold_is_the_level(size, num_tests):
  skewed = np.random.default_rng(0).exponential(size=size)
  for sign in (1, -1):
    threshold = significance.threshold(sign * skewed, num_tests)
    moved = significance.student(sign * (skewed - skewed.mean()) + threshold)
    assert moved.p_above == pytest.approx(significance.LEVEL / num_tests)


@pytest.mark.parametrize('unit', [1e-11, 1e20])
def test_the_unit_of_the_scores_has_no_effect(unit):
  scores = np.array([3.0, 4.0, 3.5, 5.0, 4.5, 3.2])
  test = significance.student(unit * scores)
  assert test.p_value == pytest.approx(stats.ttest_1samp(scores, 0).pvalue)
  threshold = significance.threshold(unit * scores)
  assert threshold == pytest.approx(unit * significance.threshold(scores))


@pytest.mark.parametrize('size', [0, 1])
def test_fewer_than_two_differences_have_no_test(size):
  assert significance.student(np.ones(size)) is None


@pytest.mark.parametrize(
  ('value', 'size', 'above', 'below', 'threshold'),
  [
    (2.0, 3, 1 / 8, 1.0, math.inf),
    (2.0, 5, 1 / 32, 1.0, 0.0),
    (-2.0, 5, 1.0, 1 / 32, 0.0),
    (0.0, 5, 1.0, 1.0, 0.0),
  ],
)
def test_equal_differences_have_a_sign_test(
  value, size, above, below, threshold
):
  # Rounding errors do not count as spread, nor as a difference from 0.
  scores = 1 + np.linspace(0, 1e-13, size)
  differences = significance.difference(value + scores, scores[::-1])
  test = significance.student(differences)
  assert (test.p_above, test.p_below) == (above, below)
  assert test.standard_error == 0
  assert significance.threshold(differences) == threshold
  # 2^-5 is below 5 % and above 2.5 %.
  assert significance.threshold(differences, 2) == math.inf


@pytest.mark.parametrize(
  ('p_values', 'significant'),
  [
    # The levels are 5 % / 3, 5 % / 2 and 5 %.
    ((0.03, 0.01, 0.02), (True, True, True)),
    ((0.04, 0.01, 0.03), (False, True, False)),
    ((0.04, 0.02, 0.03), (False, False, False)),
    # The third is below its level, but the second is not.
    ((0.01, 0.026, 0.027), (True, False, False)),
  ],
)
def test_holm_correction_matches_hand_computed_decisions(p_values, significant):
  np.testing.assert_array_equal(significance.holm(p_values), significant)


def test_ten_skewed_differences_have_the_larger_of_two_p_values():
  # Nine zeros and a one: mean 0.1, variance 0.1, third moment 0.1. Hall's
  # statistic is (0.1 + 0.1 / 6 + 0.1^3 / 0.03 + 0.1^5 / 0.0027) / 0.1, and t
  # is 1.
  differences = np.array([0.0] * 9 + [1.0])
  test = significance.student(differences)
  assert test.p_above == pytest.approx(stats.t.sf(1.0, 9))
  assert test.p_below == pytest.approx(stats.t.cdf(1.5 + 1 / 27, 9))


def test_a_larger_difference_is_never_less_significant():
  rng = np.random.default_rng(0)
  for skewed in (
    *rng.exponential(size=(10, 10)),
    *-rng.exponential(size=(10, 10)),
  ):
    tests = [significance.student(skewed + d) for d in np.linspace(-9, 9, 99)]
    assert np.all(np.diff([test.p_above for test in tests]) < 1e-12)
    assert np.all(np.diff([test.p_below for test in tests]) > -1e-12)


def test_skewed_differences_without_a_mean_are_seldom_significant():
  rng = np.random.default_rng(0)
  found = [
    significance.student(rng.exponential(size=10) - 1).p_below
    for _ in range(2000)
  ]
  assert np.mean(np.array(found) < 0.05) < 0.08
