"""Tests of selective prediction and of detection by hand."""

import numpy as np
import pytest

from bfl_tf import metrics


def test_selective_scores_match_hand_computed_values():
  found = metrics.selective([0.1, 0.2, 0.3, 0.4, 0.5], [1, 1, 0, 1, 1])
  # Risks are 0, 0, 1/3, 1/4, 1/5. A perfect ranking has 0 except for the last.
  assert found.aurc == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 5)
  assert found.excess_aurc == pytest.approx((1 / 3 + 1 / 4) / 5)
  assert found.accuracy_at_80_coverage == pytest.approx(3 / 4)
  assert found.coverage_at_5_risk == 2 / 5
  # Four of six are less than 80 %, so five examples are answered.
  found = metrics.selective(np.arange(6), [1, 1, 1, 1, 0, 1])
  assert found.accuracy_at_80_coverage == pytest.approx(4 / 5)
  # A risk of 5 % allows all thirty answers, but not ten.
  found = metrics.selective(np.arange(30), np.arange(30) != 9)
  assert found.coverage_at_5_risk == 1


@pytest.mark.parametrize('count', [20, 960])
def test_a_risk_equal_to_the_limit_is_allowed(count):
  # In floating point 1 - 0.95 is above 0.05.
  found = metrics.selective(np.zeros(count), np.arange(count) % 20 > 0)
  assert found.coverage_at_5_risk == 1


def test_tied_examples_are_all_answered_or_all_referred():
  uncertainty = np.repeat([0.1, 0.2, 0.3], [9, 10, 1])
  found = metrics.selective(uncertainty, np.arange(20) % 10 < 9)
  assert found.coverage_at_5_risk == pytest.approx(9 / 20)
  assert found.accuracy_at_80_coverage == pytest.approx(18 / 19)


def test_rankings_without_information_or_answers():
  assert metrics.selective([0.1, 0.2], [0, 0]).coverage_at_5_risk == 0
  correct = np.arange(100) % 4 > 0
  # The area is the error rate.
  assert metrics.selective(np.zeros(100), correct).aurc == pytest.approx(0.25)
  assert metrics.selective(1.0 - correct, correct).excess_aurc == 0


@pytest.mark.parametrize(
  ('uncertainty', 'gain'),
  [
    ([0.0, 0.1, 0.2, 0.9], 1.0),
    ([0.5] * 4, 0.0),
    # The wrong one is first: accuracies 0, 1/2, 2/3, 3/4; best 1, 1, 1, 3/4.
    ([0.4, 0.3, 0.2, 0.1], (23 / 48 - 3 / 4) / (15 / 16 - 3 / 4)),
  ],
)
def test_ranking_gain_matches_hand_computed_values(uncertainty, gain):
  correct = [True, True, True, False]
  found = metrics.ranking_gain(uncertainty, correct)
  assert found == pytest.approx(gain, abs=1e-12)
  assert metrics.ranking_gain(uncertainty, [1] * 4) == 0
  assert metrics.ranking_gain(uncertainty, [0] * 4) == 0


def test_detection_scores_match_hand_computed_values():
  found = metrics.detection([0.1, 0.2, 0.6], [0.5, 0.9])
  # One of six pairs is in the wrong order.
  assert found.auroc == pytest.approx(5 / 6)
  # From the top: out, in, out.
  assert found.aupr_out == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
  # From the bottom: in, in, out, in.
  assert found.aupr_in == pytest.approx((1 + 1 + 3 / 4) / 3)
  assert metrics.detection([1], [1]).auroc == 0.5
  # All outliers are at 0.5 or above, and so is one of three inliers.
  assert found.fpr_at_95 == pytest.approx(1 / 3)
