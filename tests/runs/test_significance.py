"""Tests of Student's test and Holm's correction, by hand."""

import numpy as np
import pytest

from bfl_tf.runs import significance


@pytest.mark.parametrize('unit', [1e-11, 1, 1e20])
def test_students_test_matches_hand_computed_values(unit):
  # Mean 2, standard deviation 1: t = 2 x 3^0.5 = 3.464. With 2 degrees of
  # freedom, P(T > t) = 1/2 - t / (2 (2 + t^2)^0.5).
  differences = unit * np.array([1.0, 2.0, 3.0])
  test = significance.student(differences)
  above = 0.5 - 12**0.5 / (2 * 14**0.5)
  assert test == pytest.approx((above, 1 - above))
  assert test.p_value == pytest.approx(2 * above)
  error = significance.standard_error(differences)
  assert error == pytest.approx(unit * 3**-0.5)


@pytest.mark.parametrize(
  ('value', 'size', 'above', 'below'),
  [
    (2.0, 3, 1 / 8, 1.0),
    (2.0, 5, 1 / 32, 1.0),
    (-2.0, 5, 1.0, 1 / 32),
    (0.0, 5, 1.0, 1.0),
  ],
)
def test_equal_differences_have_a_sign_test(value, size, above, below):
  # Rounding errors do not count as spread, nor as a difference from 0.
  scores = 1 + np.linspace(0, 1e-13, size)
  differences = significance.difference(value + scores, scores[::-1])
  assert significance.student(differences) == (above, below)


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


def test_equivalence_is_the_larger_of_two_one_sided_tests():
  # Mean 0 and standard deviation 1: both tests have the t of the first test.
  above = 0.5 - 12**0.5 / (2 * 14**0.5)
  differences = np.array([-1.0, 0.0, 1.0])
  assert significance.equivalence(differences, 2.0) == pytest.approx(above)
  # The mean 3 is not below the margin 2.
  assert significance.equivalence(differences + 3, 2.0) > 0.5
  assert significance.equivalence(differences[:1], 2.0) is None
  # Equal models.
  assert significance.equivalence(np.zeros(3), 0.1) == 0
