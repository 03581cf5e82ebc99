"""Tests of schedules."""

import pytest

from bfl_tf import training
from experiments.papers.fedbe import released


def rates(schedule, num_rounds, initial=0.5):
  return [schedule.rate(initial, r, num_rounds) for r in range(num_rounds)]


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
  steps = training.Steps(decay_at=(0.3, 0.6, 0.9), decay_factor=(0.2, 0.5, 0.1))
  expected = [1.0] * 3 + [0.2] * 3 + [0.1] * 3 + [0.01]
  assert rates(steps, 10, 1.0) == pytest.approx(expected)


def test_fractions_with_rounding_errors_fall_on_the_exact_round():
  # 0.55 * 100 is 55.00000000000001, 0.7 * 90 is 62.99999999999999.
  steps = training.SCHEDULES['steps']
  assert rates(steps((0.55,)), 100, 1.0).index(0.1) == 55


def test_exponential_decay_begins_after_the_constant_rounds():
  # lr0 x 0.96^max(0, r - 50), r from 0.
  exponential = training.SCHEDULES['exponential'](silent_rounds=50)
  got = rates(exponential, 60)
  assert got[:51] == [0.5] * 51
  expected = [0.5 * 0.96**k for k in range(1, 10)]
  assert got[51:] == pytest.approx(expected)
  other = training.SCHEDULES['exponential'](0.5)
  assert rates(other, 3) == [0.5, 0.25, 0.125]


def test_steps_of_a_round_and_the_number_of_epochs():
  schedule = training.Schedule(min_epochs=2, step_decay=0.5)
  assert schedule.epochs(5, 0) == (2, 5)
  assert schedule.factors(3, 1, 0, 1).tolist() == [1, 0.5, 0.25]
  assert training.Schedule().epochs(5, 0) == (5, 5)


def test_the_schedule_of_fedbes_published_code():
  """The factors are 0.5, 1, 0.2, ..., one round after each fraction."""
  schedule = released.ReleasedSchedule(
    (0.3, 0.6, 0.9), (0.2, 0.5, 0.1), epoch_decay=0.1
  )
  expected = [0.5] + [1.0] * 3 + [0.2] * 3 + [0.1] * 3
  assert rates(schedule, 10, 1.0) == pytest.approx(expected)
  assert [schedule.epochs(20, r)[0] for r in (0, 4, 5)] == [40, 40, 20]
  # Two steps per epoch.
  factors = schedule.factors(62, 2, 0, 10)
  assert factors.tolist() == [1] * 60 + [0.1] * 2
