"""Tests of numeric scores, by hand and by numerical integration."""

import numpy as np
import pytest
from scipy import integrate, stats

from bfl_tf import metrics

GIVEN = metrics.NumericEvaluation(
  mean=[0.0, 2.0], labels=[1.0, 0.0], aleatoric=[0.75, 3.0], epistemic=[0.25, 1]
)  # Standard deviations 1 and 2, residuals 1 and -1.


def test_numeric_scores_match_hand_computed_values():
  scores = metrics.summarize(GIVEN)
  assert scores['rmse'] == pytest.approx(np.sqrt((1 + 4) / 2))
  log_densities = stats.norm([0, 2], [1, 2]).logpdf([1, 0])
  assert scores['nll'] == pytest.approx(-log_densities.mean())
  assert scores['width_90'] == pytest.approx(2 * 1.6448536 * 1.5)
  assert scores['coverage_90'] == 1
  assert scores['aleatoric'] == pytest.approx(1.875)
  far = metrics.summarize(GIVEN._replace(labels=[1.7, 0.0]))
  assert far['coverage_90'] == 0.5


def test_crps_is_the_integral_of_squared_differences():
  def of_one(mean, scale, label):
    def square(x):
      return (stats.norm.cdf(x, mean, scale) - (x >= label)) ** 2

    ends = mean - 12 * scale, mean + 12 * scale
    return integrate.quad(square, *ends, points=[label], limit=200)[0]

  expected = (of_one(0, 1, 1) + of_one(2, 2, 0)) / 2
  assert metrics.summarize(GIVEN)['crps'] == pytest.approx(expected, rel=1e-6)


def test_pit_is_uniform_only_for_the_true_distribution():
  labels = np.random.default_rng(0).normal(3, 2, 20000)
  ones = np.ones_like(labels)
  right = metrics.NumericEvaluation(3 * ones, labels, 3 * ones, ones)
  assert metrics.summarize(right)['pit_error'] < 0.01
  narrow = right._replace(aleatoric=0 * ones)
  assert metrics.summarize(narrow)['pit_error'] > 0.05
