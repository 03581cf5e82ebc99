"""Tests of metrics by class and of hypothesis conflicts."""

import numpy as np
import pytest
from sklearn import metrics as sk_metrics

from bfl_tf import metrics

PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])


def test_scores_of_a_prediction_that_misses_a_rare_class():
  labels = [0, 0, 0, 1]
  assert metrics.accuracy(PROBS, labels) == 0.75
  assert metrics.per_class_recall(PROBS, labels).tolist() == [1, 0]
  assert metrics.balanced_accuracy(PROBS, labels) == 0.5


def test_a_class_without_examples_is_ignored():
  recall = metrics.per_class_recall(PROBS, [0, 0, 0, 0])
  assert recall[0] == 1 and np.isnan(recall[1])
  assert metrics.balanced_accuracy(PROBS, [0, 0, 0, 0]) == 1


@pytest.mark.parametrize(
  'sizes, expected',
  [
    ([96, 4], 'class 1 is 4.0 % of the examples'),
    ([80, 20], None),
    # With a hundred classes of 1 % each, no class is rare.
    ([10] * 100, None),
  ],
)
def test_imbalance_describes_the_rarest_class(sizes, expected):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  assert metrics.imbalance(labels, range(len(sizes))) == expected


def test_one_against_rest_matches_hand_computed_values():
  probs = np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.5, 0.4, 0.1]])
  auroc = metrics.one_against_rest(probs, np.array([0, 0, 1]))
  # Class 0: 0.7 and 0.4 against 0.5. Class 1: 0.4 against 0.2 and 0.5.
  np.testing.assert_allclose(auroc[:2], [0.5, 0.5])
  assert np.isnan(auroc[2])
  rng = np.random.default_rng(0)
  y = rng.integers(0, 3, 200)
  probs = rng.dirichlet([1, 1, 1], 200)
  theirs = [sk_metrics.roc_auc_score(y == c, probs[:, c]) for c in range(3)]
  np.testing.assert_allclose(metrics.one_against_rest(probs, y), theirs)


def test_hypothesis_conflict_matches_hand_computed_values():
  # Two models that differ on one of four examples.
  assert metrics.hypothesis_conflict([[0, 1, 2, 2], [0, 1, 2, 0]]) == 0.25
  # A third model differs on the first example: 1/4, 1/4 and 2/4 for the pairs.
  classes = [[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 2, 2]]
  assert metrics.hypothesis_conflict(classes) == pytest.approx(1 / 3)
  assert metrics.hypothesis_conflict([[3, 3]] * 5) == 0
