"""Risk against coverage by hand."""

import numpy as np
import pytest

from bfl_tf import metrics

UNCERTAINTY = [0.1, 0.2, 0.3, 0.4]
CORRECT = [1, 1, 0, 1]


def test_by_hand():
  found = metrics.selective(UNCERTAINTY, CORRECT, coverage=0.75, risk=0.3)
  # Risks 0, 0, 1/3, 1/4; of a perfect ranking 0, 0, 0, 1/4.
  assert found.area == pytest.approx((1 / 3 + 1 / 4) / 4)
  assert found.excess == pytest.approx(1 / 12)
  assert found.accuracy_at == pytest.approx(2 / 3)
  # At a risk of 0.3 all may be answered, though three may not.
  assert found.coverage_at == 1


@pytest.mark.parametrize(
  ('coverage', 'accuracy'), [(0.5, 1), (0.51, 2 / 3), (1, 3 / 4)]
)
def test_coverage_is_at_least_what_was_asked(coverage, accuracy):
  found = metrics.selective(UNCERTAINTY, CORRECT, coverage=coverage)
  assert found.accuracy_at == pytest.approx(accuracy)


@pytest.mark.parametrize('count', [20, 960])
def test_exactly_the_risk_that_was_asked_for(count):
  # In floating point 1 - 0.95 is above 0.05.
  correct = np.arange(count) % 20 > 0
  found = metrics.selective(np.zeros(count), correct, risk=0.05)
  assert found.coverage_at == 1


def test_no_answer_is_safe_enough():
  assert metrics.selective([0.1, 0.2], [0, 0], risk=0.5).coverage_at == 0


def test_a_ranking_that_knows_nothing_has_the_error_rate():
  correct = np.arange(100) % 4 > 0
  found = metrics.selective(np.zeros(100), correct)
  assert found.area == pytest.approx(0.25)
  assert metrics.selective(1.0 - correct, correct).excess == 0


@pytest.mark.parametrize(
  ('uncertainty', 'gain'),
  [
    ([0.0, 0.1, 0.2, 0.9], 1.0),
    ([0.5] * 4, 0.0),
    # Wrong first: accuracies 0, 1/2, 2/3, 3/4 where 1, 1, 1, 3/4 are the best.
    ([0.4, 0.3, 0.2, 0.1], (23 / 48 - 3 / 4) / (15 / 16 - 3 / 4)),
  ],
)
def test_ranking_gain(uncertainty, gain):
  correct = [True, True, True, False]
  found = metrics.ranking_gain(uncertainty, correct)
  assert found == pytest.approx(gain, abs=1e-12)
  assert metrics.ranking_gain(uncertainty, [1] * 4) == 0
  assert metrics.ranking_gain(uncertainty, [0] * 4) == 0
