"""Tests of Hall's test and of thresholds, by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from bfl_tf.runs import significance
from experiments.harness import hall


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
