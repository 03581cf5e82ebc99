"""Tests of scores by hand and against independent implementations."""

import math

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from bfl_tf import metrics

PROBS = np.array([[0.7, 0.3], [0.35, 0.65], [0.9, 0.1]])
LABELS = np.array([0, 0, 1])
P = [[0.5, 0.5]]


def draw(seed, num_examples=40, num_classes=4):
  rng = np.random.default_rng(seed)
  probs = rng.dirichlet(np.full(num_classes, 0.5), num_examples)
  return probs, rng.integers(0, num_classes, num_examples)


def summarize(probs, labels, **options):
  variance = (probs * (1 - probs)).sum(-1, dtype=np.float64)
  parts = 0.7 * variance, 0.3 * variance, 0 * variance
  return metrics.summarize(metrics.Evaluation(probs, labels, *parts, **options))


def test_scores_match_hand_computed_values():
  nll = -(math.log(0.7) + math.log(0.35) + math.log(0.1)) / 3
  brier = (2 * 0.3**2 + 2 * 0.65**2 + 2 * 0.9**2) / 3
  # Five bins: confidences 0.65 (wrong), 0.7 (right), 0.9 (wrong).
  ece = (abs(0.5 - 0.675) * 2 + abs(0 - 0.9)) / 3
  assert metrics.accuracy(PROBS, LABELS) == pytest.approx(1 / 3)
  assert metrics.negative_log_likelihood(PROBS, LABELS) == pytest.approx(nll)
  assert metrics.brier_score(PROBS, LABELS) == pytest.approx(brier)
  got = metrics.expected_calibration_error(PROBS, LABELS, num_bins=5)
  assert got == pytest.approx(ece)
  # A label of probability 0 has the NLL of the smallest probability.
  got = metrics.negative_log_likelihood([[1.0, 0.0]], [1])
  assert got == pytest.approx(87.3365, abs=1e-4)


def test_entropies_match_hand_computed_values():
  probs = [[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
  got = metrics.normalized_entropy(probs)
  np.testing.assert_allclose(got, [1, 0, math.log(2) / math.log(4)])
  # Samples with the first mean are one-hot, and those with the second equal it.
  found = metrics.mutual_information([P[0], P[0]], [0, np.log(2)])
  np.testing.assert_allclose(found, [np.log(2), 0], atol=1e-12)


@given(seed=st.integers(0, 2**32), num_bins=st.integers(1, 30))
def test_scores_are_in_range_and_ignore_the_order_of_examples(seed, num_bins):
  probs, labels = draw(seed)
  scores = summarize(probs, labels, num_bins=num_bins)
  for name in ('accuracy', 'ece', 'entropy', 'aleatoric', 'epistemic'):
    assert 0 <= scores[name] <= 1
  assert 0 <= scores['brier'] <= 2
  assert 0 <= scores['mutual_information'] <= np.log(probs.shape[-1])
  assert scores['nll'] >= 0
  order = np.random.default_rng(seed).permutation(labels.size)
  again = summarize(probs[order], labels[order], num_bins=num_bins)
  assert again == pytest.approx(scores, rel=1e-12, abs=1e-15)


def summarize_with(**changes):
  good = metrics.Evaluation(P, [0], [0.1], [0.1], [0.1])
  return metrics.summarize(good._replace(**changes))


# Name of the wrong argument, and the call.
INVALID = [
  ('probs', lambda: metrics.accuracy([0.5, 0.5], [0])),
  ('probs', lambda: metrics.accuracy([[np.nan, 1.0]], [0])),
  ('probs', lambda: metrics.normalized_entropy([[0.5, 0.6]])),
  ('labels', lambda: metrics.accuracy(P, [0.0])),
  ('labels', lambda: metrics.accuracy(P, [2])),
  ('epistemic', lambda: summarize_with(epistemic=[0.1, 0.1])),
]


def test_invalid_arguments_are_rejected_by_name():
  for argument, call in INVALID:
    with pytest.raises(ValueError, match=argument):
      call()


@pytest.mark.parametrize('name', ['probs', 'aleatoric', 'epistemic'])
def test_scores_of_predictions_that_are_not_finite_are_nan(name):
  value = [[np.inf, 0.5]] if name == 'probs' else [np.inf]
  assert np.isnan(list(summarize_with(**{name: value}).values())).all()
  numbers = metrics.NumericEvaluation([0.0], [0.0], [1.0], [1.0])
  name = 'mean' if name == 'probs' else name
  scores = metrics.summarize(numbers._replace(**{name: [np.inf]}))
  assert np.isnan(list(scores.values())).all()


def test_find_returns_the_score_of_a_column():
  for column, name in (
    ('validation_nll', 'nll'),
    ('accuracy_A+C', 'accuracy'),
    ('recall_class_3', 'recall_class'),
    ('epistemic_ranking', 'epistemic_ranking'),
  ):
    assert metrics.find(column).name == name
  assert metrics.find('train_seconds') is None


@pytest.mark.parametrize(
  'labels, recall, balanced',
  [([0, 0, 0, 1], [1, 0], 0.5), ([0, 0, 0, 0], [1, np.nan], 1)],
)
def test_a_rare_class_counts_and_an_absent_one_does_not(
  labels, recall, balanced
):
  probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
  np.testing.assert_array_equal(metrics.per_class_recall(probs, labels), recall)
  assert metrics.balanced_accuracy(probs, labels) == balanced


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
  np.testing.assert_allclose(auroc, [0.5, 0.5, np.nan])


def test_hypothesis_conflict_matches_hand_computed_values():
  # The pairs of models differ on 1/4, 1/4 and 2/4 of the examples.
  classes = [[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 2, 2]]
  assert metrics.hypothesis_conflict(classes) == pytest.approx(1 / 3)
