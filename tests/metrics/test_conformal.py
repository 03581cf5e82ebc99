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
  # Scores 0.1, 0.4, 0.7 and 0.75, each of which ends its bin.
  assert np.flatnonzero(counts).tolist() == [99, 399, 699, 749]
  # Rank ceil(5 x 0.6) = 3 of 4.
  assert metrics.threshold(counts, 0.4) == 0.7
  sets = metrics.prediction_sets([[0.9, 0.1], [0.25, 0.75]], 0.75)
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


@pytest.mark.parametrize('alpha', [0.1, 0.3])
def test_the_promise_is_kept_over_many_calibrations(alpha):
  rng = np.random.default_rng(1)
  found = []
  for _ in range(200):
    counts = metrics.score_counts(*drawn(rng, 100))
    limit = metrics.threshold(counts, alpha)
    probs, labels = drawn(rng, 100)
    sets = metrics.prediction_sets(probs, limit)
    found.append(sets[np.arange(100), labels].mean())
  error = np.std(found, ddof=1) / np.sqrt(len(found))
  # At least 1 - alpha; not more than a rank and a bin above it.
  assert np.mean(found) > 1 - alpha - 5 * error
  assert np.mean(found) < 1 - alpha + 1 / 101 + 0.02 + 5 * error
