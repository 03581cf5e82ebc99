"""Tests of curves and bins."""

import numpy as np
import pytest

from bfl_tf import metrics


def test_retention_curve_matches_hand_computed_values():
  # Tied examples have the mean accuracy of their group.
  curve = metrics.retention_curve([1, 0, 2, 1], [True, True, False, False])
  np.testing.assert_allclose(curve.retained, [0.25, 0.5, 0.75, 1])
  np.testing.assert_allclose(curve.accuracy, [1, 1.5 / 2, 2 / 3, 2 / 4])
  assert curve.area == pytest.approx((1 + 1.5 / 2 + 2 / 3 + 2 / 4) / 4)


def test_bins_include_their_lower_edge_and_the_last_bin_includes_1():
  probs = [[1.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.74, 0.26]]
  bins = metrics.reliability(probs, [0, 1, 0, 0], num_bins=4)
  np.testing.assert_array_equal(bins.edges, [0, 0.25, 0.5, 0.75, 1])
  np.testing.assert_array_equal(bins.counts, [0, 0, 2, 2])
  np.testing.assert_array_equal(bins.right, [0, 0, 1, 2])
  np.testing.assert_allclose(bins.accuracy, [np.nan, np.nan, 0.5, 1])
  np.testing.assert_allclose(bins.confidence, [np.nan, np.nan, 0.62, 0.875])
  expected = (abs(0.5 - 0.62) + abs(1 - 0.875)) / 2
  assert bins.expected_calibration_error == pytest.approx(expected)
  # Edges are rounded once. Rounding may give a confidence above 1.
  bins = metrics.reliability([[0.6, 0.4]], [0], num_bins=5)
  np.testing.assert_array_equal(bins.edges, [0, 0.2, 0.4, 0.6, 0.8, 1])
  np.testing.assert_array_equal(bins.counts, [0, 0, 0, 1, 0])
  assert metrics.reliability([[1 + 1e-6, 0]], [0], 10).counts[-1] == 1
