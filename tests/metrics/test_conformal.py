"""Tests of conformal sets: coverage and size."""

import math

import numpy as np
import pytest

from bfl_tf import metrics


def drawn(rng, count, num_classes=5, spread=2.0, sharp=3):
  """Returns predictions, overconfident for `sharp` above 1, and labels."""
  logits = rng.normal(0, spread, (count, num_classes))
  probs, predicted = np.exp(logits), np.exp(sharp * logits)
  probs, predicted = (p / p.sum(-1, keepdims=True) for p in (probs, predicted))
  below = probs.cumsum(-1)[:, :-1] < rng.random([count, 1])
  labels = below.sum(-1)
  return predicted.astype(np.float32), labels


def published(probs, score):
  """Returns published scores minus 1; -inf for the most probable class."""
  falling = -np.sort(-probs.astype(np.float64), -1)
  tails = np.cumsum(falling[:, ::-1], -1)[:, ::-1]
  penalty = 0.01 * np.maximum(0, np.arange(1, probs.shape[1] + 1) - 5)
  scores = {'lac': -falling, 'aps': -tails, 'raps': penalty - tails}[score]
  scores[:, 0] = -np.inf
  found = np.empty_like(scores)
  np.put_along_axis(found, np.argsort(-probs, -1, 'stable'), scores, -1)
  return found


def test_prediction_sets_match_hand_computed_sets():
  probs = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.25, 0.75]]
  counts = metrics.score_counts(probs, [0, 0, 0, 0])
  # The most probable class has score 0.
  assert counts[0] == 2 and counts.sum() == 4
  # Rank ceil(5 x 0.6) = 3 of 4: the score of 0.3.
  sets = metrics.set_scores(probs) <= metrics.threshold(counts, 0.4)
  assert sets.sum(-1).tolist() == [1, 2, 2, 1]
  # Four scores are too few for 90 %.
  assert metrics.threshold(counts, 0.1) == 1


@pytest.mark.parametrize('score', metrics.SET_SCORES)
@pytest.mark.parametrize('sharp', [1, 4])
@pytest.mark.parametrize('num_classes, spread', [(2, 1.5), (10, 2), (100, 5)])
def test_sets_agree_with_exact_quantiles(score, sharp, num_classes, spread):
  rng, rows = np.random.default_rng(0), np.arange(5000)
  (probs, y), (others, labels) = (
    drawn(rng, rows.size, num_classes, spread, sharp) for _ in range(2)
  )
  counts = metrics.score_counts(probs, y, score)
  exact = np.sort(published(probs, score)[rows, y])
  # No set is empty, and sets are ordered by probability.
  scores = metrics.set_scores(others, score)
  assert np.all(scores.min(-1) == 0) and np.all(scores <= 1)
  order = np.argsort(-others, -1, 'stable')
  ordered = np.take_along_axis(scores, order, -1)
  assert np.all(np.diff(ordered) >= -1e-12)
  for level in (0.8, 0.9, 0.95, 0.99):
    limit = exact[math.ceil((rows.size + 1) * level) - 1]
    wanted = published(others, score) <= limit
    limit = metrics.threshold(counts, 1 - level)
    sets = scores <= limit
    assert sets.sum() == pytest.approx(wanted.sum(), rel=0.02)
    coverage = sets[rows, labels].mean()
    assert coverage == pytest.approx(wanted[rows, labels].mean(), abs=0.005)


@pytest.mark.parametrize('scale', [1e-3, 1.0, 1e3, 1e6, 1e12])
def test_intervals_agree_with_exact_quantiles_at_any_scale(scale):
  residual = scale * np.abs(np.random.default_rng(0).normal(size=2000))
  limit = metrics.threshold(metrics.residual_counts(residual), 0.1)
  exact = np.sort(residual)[math.ceil(2001 * 0.9) - 1]
  half = metrics.interval_half_width(limit)
  assert exact <= half <= max(1.03 * exact, exact + 0.001)


@pytest.mark.parametrize('percent', [5, 10, 20, 45, 55])
def test_the_rank_of_a_threshold_is_exact(percent):
  for total in range(1, 2001):
    counts = np.ones(total, int)
    rank = -(-(total + 1) * (100 - percent) // 100)
    wanted = rank / total if rank <= total else 1
    for alpha in (percent / 100, 1 - (100 - percent) / 100):
      assert metrics.threshold(counts, alpha) == wanted
