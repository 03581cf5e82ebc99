"""The promise of conformal sets, and that sites' counts add up to it."""

import numpy as np
import pytest

from bfl_tf import metrics


def drawn(rng, count, num_classes=5):
  """Predictions that are not calibrated, and labels that follow others."""
  logits = rng.normal(0, 2, (count, num_classes))
  probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  sharp = probs**3 / (probs**3).sum(-1, keepdims=True)
  labels = np.array([rng.choice(num_classes, p=row) for row in probs])
  return sharp, labels


def test_by_hand():
  probs = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.25, 0.75]]
  counts = metrics.score_counts(probs, [0, 0, 0, 0])
  # Scores 0, twice, of the most probable class; 0.7 and 0.75 end their bins.
  assert counts[[0, 699, 749]].tolist() == [2, 1, 1]
  # Rank ceil(5 x 0.6) = 3 of 4.
  assert metrics.threshold(counts, 0.4) == 0.7
  sets = metrics.set_scores([[0.9, 0.1], [0.25, 0.75]]) <= 0.75
  assert sets.tolist() == [[True, False], [True, True]]
  # Four scores cannot promise 90 %.
  assert metrics.threshold(counts, 0.1) == 1


def test_sites_add_up():
  probs, labels = drawn(np.random.default_rng(0), 300)
  whole = metrics.score_counts(probs, labels)
  sites = [
    metrics.score_counts(probs[part], labels[part])
    for part in np.array_split(np.arange(300), [20, 150])
  ]
  assert np.array_equal(whole, np.sum(sites, 0))


def test_adaptive_scores_by_hand():
  probs = np.float64([[0.1, 0.2, 0.4, 0.1, 0.1, 0.05, 0.05]])
  before = [[0.6, 0.4, 0, 0.7, 0.8, 0.9, 0.95]]
  np.testing.assert_allclose(metrics.set_scores(probs, 'aps'), before)
  # The sixth and the seventh class cost 0.01 and 0.02.
  ranked = np.add(before, [[0, 0, 0, 0, 0, 0.01, 0.02]]) / 1.02
  np.testing.assert_allclose(metrics.set_scores(probs, 'raps'), ranked)


@pytest.mark.parametrize('score', metrics.SET_SCORES)
@pytest.mark.parametrize('sharp', [1, 9])
def test_no_set_is_empty_and_a_likelier_class_is_in_it_first(score, sharp):
  probs, _ = drawn(np.random.default_rng(2), 200)
  probs = probs**sharp / (probs**sharp).sum(-1, keepdims=True)
  scores = metrics.set_scores(probs, score)
  assert np.all(scores.min(-1) == 0) and np.all(scores <= 1)
  order = np.argsort(-probs, -1)
  assert np.all(np.diff(np.take_along_axis(scores, order, -1)) >= -1e-12)


@pytest.mark.parametrize('score', metrics.SET_SCORES)
@pytest.mark.parametrize('alpha', [0.1, 0.3])
def test_the_promise_is_kept_over_many_calibrations(alpha, score):
  rng = np.random.default_rng(1)
  found = []
  for _ in range(200):
    counts = metrics.score_counts(*drawn(rng, 100), score)
    limit = metrics.threshold(counts, alpha)
    probs, labels = drawn(rng, 100)
    sets = metrics.set_scores(probs, score) <= limit
    found.append(sets[np.arange(100), labels].mean())
  error = np.std(found, ddof=1) / np.sqrt(len(found))
  # At least 1 - alpha; not more than a rank and a bin above it.
  assert np.mean(found) > 1 - alpha - 5 * error
  assert np.mean(found) < 1 - alpha + 1 / 101 + 0.02 + 5 * error
