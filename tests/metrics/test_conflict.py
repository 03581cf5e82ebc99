"""Tests of hypothesis conflicts by hand."""

import pytest

from bfl_tf import metrics


def test_hypothesis_conflict_matches_hand_computed_values():
  # Two models that differ on one of four examples.
  assert metrics.hypothesis_conflict([[0, 1, 2, 2], [0, 1, 2, 0]]) == 0.25
  # A third model differs on the first example: 1/4, 1/4 and 2/4 for the pairs.
  classes = [[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 2, 2]]
  assert metrics.hypothesis_conflict(classes) == pytest.approx(1 / 3)
  assert metrics.hypothesis_conflict([[3, 3]] * 5) == 0
