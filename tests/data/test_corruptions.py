"""Tests of image corruptions: strength and reproducibility."""

import numpy as np
import pytest
from scipy import ndimage

from bfl_tf.data import corruptions


def images():
  rng = np.random.default_rng(0)
  smooth = ndimage.gaussian_filter(rng.random((6, 32, 32, 3)), (0, 1, 1, 0))
  low, high = smooth.min(), smooth.max()
  return np.uint8(40 + 170 * (smooth - low) / (high - low))


@pytest.mark.parametrize('kind', corruptions.KINDS)
def test_higher_strengths_change_the_image_more(kind):
  x = images()
  distances = []
  for strength in corruptions.STRENGTHS:
    changed = corruptions.corrupt(x, kind, strength, seed=3)
    assert changed.shape == x.shape and changed.dtype == np.uint8
    again = corruptions.corrupt(x, kind, strength, seed=3)
    assert np.array_equal(changed, again)
    distances.append(np.mean((changed.astype(float) - x) ** 2))
  assert distances[0] > 0
  assert distances == sorted(distances)


def test_noise_depends_on_the_seed_and_has_the_expected_variance():
  x = np.full([50, 32, 32, 1], 128, np.uint8)
  first, other = (corruptions.corrupt(x, 'noise', 2, seed=s) for s in (0, 1))
  assert not np.array_equal(first, other)
  variance = (0.08 * 255) ** 2 + 1 / 12
  error = variance * np.sqrt(2 / x.size)
  assert first.astype(float).var() == pytest.approx(variance, abs=5 * error)


def test_brightness_and_contrast_equal_values_computed_by_hand():
  x = np.uint8([[[[0], [100]], [[200], [100]]]])
  brighter = corruptions.corrupt(x, 'brightness', 2, seed=0)
  assert brighter.ravel().tolist() == [51, 151, 251, 151]
  flatter = corruptions.corrupt(x, 'contrast', 2, seed=0)
  assert flatter.ravel().tolist() == [50, 100, 150, 100]
