"""Tests of calibration errors and temperature scaling."""

import numpy as np
import pytest

from bfl_tf import metrics

PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
LABELS = [0, 1, 1, 1]


def drawn(count=4000):
  """Returns calibrated predictions and labels drawn from them."""
  rng = np.random.default_rng(0)
  logits = rng.normal(0, 1.5, (count, 4))
  probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  return probs, np.array([rng.choice(4, p=row) for row in probs])


def test_calibration_errors_match_hand_computed_values():
  # Confidences 0.6, 0.7 (right, right) and 0.8, 0.9 (wrong, right).
  found = metrics.adaptive_calibration_error(PROBS, LABELS, num_bins=2)
  assert found == pytest.approx((abs(1.3 - 2) + abs(1.7 - 1)) / 4)
  assert metrics.overconfidence(PROBS, LABELS) == pytest.approx(0.75 - 0.75)
  gaps = np.abs(PROBS.max(-1) - [1, 0, 1, 1])
  found = metrics.adaptive_calibration_error(PROBS, LABELS, num_bins=15)
  assert found == pytest.approx(gaps.mean())
  # Each class has the bins below 0.5 and from 0.5 on, with equal errors.
  error = (abs(0.7 - 0) + abs(1.7 - 1)) / 4
  found = metrics.classwise_calibration_error(PROBS, LABELS, num_bins=2)
  assert found == pytest.approx(error)


def test_the_order_of_examples_does_not_change_the_error():
  # Half of the examples have the same confidence; they belong to several bins.
  probs, labels = drawn(100)
  probs[::2] = [1, 0, 0, 0]
  order = np.argsort(labels)
  assert metrics.adaptive_calibration_error(
    probs[order], labels[order]
  ) == pytest.approx(metrics.adaptive_calibration_error(probs, labels))


@pytest.mark.parametrize('temperature', [0.4, 2.5])
def test_fit_temperature_inverts_a_known_temperature(temperature):
  probs, labels = drawn()
  miscalibrated = metrics.tempered(probs, temperature)
  found = metrics.fit_temperature(miscalibrated, labels)
  # The fit on 4 000 labels has an error of about 2 %.
  assert found == pytest.approx(1 / temperature, rel=0.1)
  over = metrics.overconfidence(miscalibrated, labels)
  assert over > 0.05 if temperature < 1 else over < -0.05
  recalibrated = metrics.tempered(miscalibrated, found)
  assert metrics.expected_calibration_error(recalibrated, labels) < 0.03


def test_the_temperature_of_separable_examples_is_that_of_the_prior():
  # The derivative of 9 log(1 + exp(-a / T)) + (log T)^2 / 2 with a = log(7 / 3)
  # is 0 at T = 0.2811.
  probs, labels = np.tile([0.7, 0.3], (9, 1)), np.zeros(9, int)
  found = metrics.fit_temperature(probs, labels)
  assert found == pytest.approx(0.2811, abs=1e-4)
  ratio = np.log(7 / 3) / found
  assert 9 * ratio / (1 + np.exp(ratio)) == pytest.approx(-np.log(found), 1e-4)
  assert metrics.tempered([[0.55, 0.45]], found)[0, 0] < 0.7


def test_a_temperature_changes_nll_and_ece_by_hand():
  # The root of 16 : 1 is 4 : 1.
  given = np.tile([16 / 17, 1 / 17], [60, 1]), np.zeros(60, int)
  found = metrics.tempered_scores(*given, 2.0)
  assert found == pytest.approx(
    {'tempered_nll': -np.log(0.8), 'tempered_ece': 0.2}
  )
  assert np.isnan([*metrics.tempered_scores(*given, np.nan).values()]).all()
  # A probability of 0 stays 0, without overflow.
  assert metrics.tempered([[1.0, 0.0]], 0.01).tolist() == [[1, 0]]
