"""Tests of learning rate schedules over rounds."""

import pytest

from bfl_tf import training


def rates(schedule, num_rounds, initial=0.5):
  return [schedule(initial, r, num_rounds) for r in range(num_rounds)]


def test_steps_decay_at_fractions_of_the_run():
  steps = training.SCHEDULES['steps']
  expected = [1.0] * 3 + [0.1] * 3 + [0.01] * 4
  assert rates(steps(), 10, 1.0) == pytest.approx(expected)
  # 0.3 of 7 rounds is 2.1, so the rate decays in round 3.
  expected = [0.5] * 3 + [0.25] * 4
  assert rates(steps((0.3,), (0.5,)), 7) == pytest.approx(expected)
  # The order of fractions has no effect; without any, the rate is constant.
  assert rates(steps((0.6, 0.3)), 10) == rates(steps(), 10)
  assert rates(steps(()), 3) == [0.5] * 3


def test_steps_can_have_a_factor_per_fraction():
  """FedBE's published code has factors 0.5, 1, 0.2, 0.1 and 0.01."""
  steps = training.SCHEDULES['steps']((0.3, 0.6, 0.9), (0.2, 0.5, 0.1), 0.5)
  expected = [0.5] + [1.0] * 2 + [0.2] * 3 + [0.1] * 3 + [0.01]
  assert rates(steps, 10, 1.0) == pytest.approx(expected)


def test_decay_after_shifts_only_fractions_that_are_whole_rounds():
  # 0.3 and 0.6 of 10 rounds are rounds 3 and 6, counted from 0.
  later = training.SCHEDULES['steps'](decay_after=True)
  expected = [1.0] * 4 + [0.1] * 3 + [0.01] * 3
  assert rates(later, 10, 1.0) == pytest.approx(expected)
  # Between two rounds there is no difference: 0.3 and 0.6 of 7 are 2.1 and 4.2.
  assert rates(later, 7) == rates(training.SCHEDULES['steps'](), 7)


def test_fractions_with_rounding_errors_fall_on_the_exact_round():
  # 0.55 * 100 is 55.00000000000001, 0.7 * 90 is 62.99999999999999.
  steps = training.SCHEDULES['steps']
  assert rates(steps((0.55,)), 100, 1.0).index(0.1) == 55
  assert rates(steps((0.7,), decay_after=True), 90, 1.0).index(0.1) == 64


def test_exponential_decay_begins_after_the_constant_rounds():
  # lr0 x 0.96^max(0, r - 50), r from 0.
  exponential = training.SCHEDULES['exponential']()
  got = rates(exponential, 60)
  assert got[:51] == [0.5] * 51
  expected = [0.5 * 0.96**k for k in range(1, 10)]
  assert got[51:] == pytest.approx(expected)
  other = training.SCHEDULES['exponential'](0.5, 0)
  assert rates(other, 3) == [0.5, 0.25, 0.125]
