"""Tests of out-of-distribution detection by hand."""

import pytest

from bfl_tf import metrics


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
