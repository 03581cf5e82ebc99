"""Tests of scores by hand and against independent implementations."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special

from bfl_tf import metrics

PROBS = np.array([[0.7, 0.3], [0.35, 0.65], [0.9, 0.1]])
LABELS = np.array([0, 0, 1])
# Two samples whose mean is PROBS.
SAMPLED = np.stack([PROBS + [[0.1, -0.1]], PROBS - [[0.1, -0.1]]])


def draw(seed, num_samples=5, num_examples=40, num_classes=4):
  rng = np.random.default_rng(seed)
  shape = (num_samples, num_examples)
  probs = rng.dirichlet(np.full(num_classes, 0.5), shape)
  return probs, rng.integers(0, num_classes, num_examples)


def summarize(probs, labels, **options):
  samples = np.asarray(probs, np.float64)
  entropy = -np.sum(special.xlogy(samples, samples), -1)
  return metrics.summarize(
    metrics.Evaluation(
      probs,
      labels,
      metrics.aleatoric_uncertainty(probs),
      metrics.epistemic_uncertainty(probs),
      entropy.mean(0) if samples.ndim == 3 else entropy,
      **options,
    )
  )


@pytest.mark.parametrize('probs', [PROBS, SAMPLED], ids=['rank2', 'rank3'])
def test_scores_match_hand_computed_values(probs):
  nll = -(math.log(0.7) + math.log(0.35) + math.log(0.1)) / 3
  brier = (2 * 0.3**2 + 2 * 0.65**2 + 2 * 0.9**2) / 3
  # Five bins: confidences 0.65 (wrong), 0.7 (right), 0.9 (wrong).
  ece = (abs(0.5 - 0.675) * 2 + abs(0 - 0.9)) / 3
  assert metrics.accuracy(probs, LABELS) == pytest.approx(1 / 3)
  assert metrics.negative_log_likelihood(probs, LABELS) == pytest.approx(nll)
  assert metrics.brier_score(probs, LABELS) == pytest.approx(brier)
  got = metrics.expected_calibration_error(probs, LABELS, num_bins=5)
  assert got == pytest.approx(ece)


def test_a_label_of_probability_0_has_the_nll_of_min_probability():
  got = metrics.negative_log_likelihood([[1.0, 0.0]], [1])
  assert got == pytest.approx(-math.log(metrics.MIN_PROBABILITY))
  assert got == pytest.approx(87.3365, abs=1e-4)


@settings(max_examples=50, deadline=None)
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
  again = summarize(probs[:, order], labels[order], num_bins=num_bins)
  assert again == pytest.approx(scores, rel=1e-12, abs=1e-15)


def test_float32_scores_are_computed_in_float64():
  probs, labels = draw(1)
  narrow = probs.astype(np.float32)
  wide = summarize(narrow.astype(np.float64), labels)
  assert summarize(narrow, labels) == pytest.approx(wide, rel=1e-12)


P = [[0.5, 0.5]]


def summarize_with(**changes):
  good = metrics.Evaluation(P, [0], [0.1], [0.1], [0.1])
  return metrics.summarize(good._replace(**changes))


# Name of the wrong argument, and the call.
INVALID = [
  ('probs', lambda: metrics.accuracy([0.5, 0.5], [0])),
  ('probs', lambda: metrics.accuracy([[np.nan, 1.0]], [0])),
  ('probs', lambda: metrics.epistemic_uncertainty([[0.5, 0.6]])),
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


def test_mutual_information_matches_hand_computed_values():
  probs = np.float64([[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]])
  found = metrics.mutual_information(probs, [0, np.log(2)])
  np.testing.assert_allclose(found, [np.log(2), 0], atol=1e-12)


def test_find_returns_the_score_of_a_column():
  for column, name in (
    ('validation_nll', 'nll'),
    ('accuracy_A+C', 'accuracy'),
    ('recall_class_3', 'recall_class'),
    ('epistemic_ranking', 'epistemic_ranking'),
  ):
    assert metrics.find(column).name == name
  assert metrics.find('train_seconds') is None
