"""Tests of uncertainty: hand-computed cases, decomposition, precision."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np

from bfl_tf import metrics


def draw(seed, num_samples=7, num_examples=20, num_classes=5):
  rng = np.random.default_rng(seed)
  shape = (num_samples, num_examples)
  return rng.dirichlet(np.full(num_classes, 0.3), shape)


def test_normalized_entropy_matches_hand_computed_values():
  probs = [[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
  got = metrics.normalized_entropy(probs)
  np.testing.assert_allclose(got, [1, 0, math.log(2) / math.log(4)])
  # The entropy is that of the mean over samples.
  probs = [[[1.0, 0.0]], [[0.0, 1.0]]]
  np.testing.assert_allclose(metrics.normalized_entropy(probs), [1.0])


def test_decomposition_matches_hand_computed_values():
  # In the first example, samples agree. In the second, they disagree.
  probs = [[[0.8, 0.2], [1, 0]], [[0.8, 0.2], [0, 1]]]
  aleatoric = metrics.aleatoric_uncertainty(probs)
  epistemic = metrics.epistemic_uncertainty(probs)
  np.testing.assert_allclose(aleatoric, [2 * 0.8 * 0.2, 0])
  np.testing.assert_allclose(epistemic, [0, 0.5], atol=1e-30)


def test_equal_float32_samples_have_epistemic_uncertainty_0():
  sample = draw(0)[:1].astype(np.float32)
  for count in (1, 7):
    probs = np.repeat(sample, count, axis=0)
    assert not metrics.epistemic_uncertainty(probs).any()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), num_samples=st.integers(1, 12))
def test_decomposition_sums_to_the_total_and_ignores_order(seed, num_samples):
  probs = draw(seed, num_samples)
  mean = probs.mean(axis=0)
  aleatoric = metrics.aleatoric_uncertainty(probs)
  epistemic = metrics.epistemic_uncertainty(probs)
  entropy = metrics.normalized_entropy(probs)
  total = (mean * (1 - mean)).sum(axis=-1)
  # The equality is exact up to the rounding of float64.
  np.testing.assert_allclose(aleatoric + epistemic, total, atol=1e-14)
  for part in (aleatoric, epistemic):
    assert (part >= 0).all() and (part <= 0.8 + 1e-12).all()
  assert (entropy >= 0).all() and (entropy <= 1).all()
  rng = np.random.default_rng(seed)
  samples, examples, classes = map(rng.permutation, probs.shape)
  shuffled = probs[samples][:, examples][:, :, classes]
  for measure, values in (
    (metrics.aleatoric_uncertainty, aleatoric),
    (metrics.epistemic_uncertainty, epistemic),
    (metrics.normalized_entropy, entropy),
  ):
    np.testing.assert_allclose(
      measure(shuffled), values[examples], rtol=1e-9, atol=1e-15
    )


def test_a_spread_of_1e_5_is_measured_in_float32():
  rng = np.random.default_rng(0)
  shift = 1e-5 * rng.standard_normal((50, 100))
  wide = np.stack([0.7 + shift, 0.3 - shift], axis=-1)
  narrow = wide.astype(np.float32)
  exact = 2 * shift.var(axis=0)
  got = metrics.epistemic_uncertainty(wide)
  np.testing.assert_allclose(got, exact, rtol=1e-9)
  # float32 has an error of 3e-8 at 0.7, which is 3e-3 of a spread of 1e-5. The
  # result may have only this rounding of the input, averaged over 50 samples.
  got = metrics.epistemic_uncertainty(narrow)
  np.testing.assert_allclose(got, exact, rtol=3e-3)
  uncentred = ((narrow**2).mean(axis=0) - narrow.mean(axis=0) ** 2).sum(axis=-1)
  assert np.abs(uncentred / exact - 1).max() > 1
