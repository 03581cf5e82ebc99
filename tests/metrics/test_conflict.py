"""Hypothesis conflicts by hand, and against all pairs."""

import itertools

import numpy as np
import pytest

from bfl_tf import metrics


def test_by_hand():
  # Two models that differ on one of four examples.
  assert metrics.hypothesis_conflict([[0, 1, 2, 2], [0, 1, 2, 0]]) == 0.25
  # A third, alone on the first: pairs differ on 1/4, 1/4 and 2/4.
  classes = [[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 2, 2]]
  assert metrics.hypothesis_conflict(classes) == pytest.approx(1 / 3)
  assert metrics.hypothesis_conflict([[3, 3]] * 5) == 0


def test_is_the_mean_over_pairs():
  classes = np.random.default_rng(0).integers(4, size=[7, 50])
  pairs = [np.mean(a != b) for a, b in itertools.combinations(classes, 2)]
  got = metrics.hypothesis_conflict(classes)
  assert got == pytest.approx(np.mean(pairs), rel=1e-12)
