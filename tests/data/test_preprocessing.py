"""Tests of preprocessing in the graph, and of corruptions of images."""

import numpy as np
import pytest
from scipy import ndimage
import tensorflow as tf

from bfl_tf import data
from bfl_tf.data import corruptions, preprocessing

IMAGES = np.random.default_rng(0).integers(1, 256, (16, 9, 7, 3), np.uint8)


@pytest.mark.parametrize('name', ['digits', 'breast_cancer'])
def test_normalize_centres_and_scales_the_training_split(name):
  dataset = data.load(name)
  x = preprocessing.normalize(dataset.train.x, dataset.mean, dataset.std)
  assert x.dtype == tf.float32
  axes = tuple(range(x.shape.rank - 1))
  wide = x.numpy().astype(np.float64)
  np.testing.assert_allclose(wide.mean(axes), 0, atol=1e-4)
  np.testing.assert_allclose(wide.std(axes), 1, atol=1e-4)


@tf.function
def augment(x, seed):
  return preprocessing.augment(x, seed)


def crops(image, padding, mode):
  """Yields all possible augmentations: offsets, whether flipped, image."""
  height, width = image.shape[:2]
  padded = np.pad(image, [(padding,) * 2, (padding,) * 2, (0, 0)], mode)
  for top in range(2 * padding + 1):
    for left in range(2 * padding + 1):
      crop = padded[top : top + height, left : left + width]
      yield top, left, False, crop
      yield top, left, True, crop[:, ::-1]


def test_augmentation_depends_on_the_seed_for_any_batch_size():
  first, again = augment(IMAGES, [1, 2]), augment(IMAGES, [1, 2])
  assert first.dtype == tf.uint8
  assert np.array_equal(first, again)
  assert np.array_equal(first, preprocessing.augment(IMAGES, [1, 2]))
  assert not np.array_equal(first, augment(IMAGES, [1, 3]))
  assert augment(IMAGES[:0], [1, 2]).shape == (0, 9, 7, 3)


@pytest.mark.parametrize(
  'padding, pad, mode', [(4, 'zeros', 'constant'), (2, 'reflect', 'reflect')]
)
def test_augmented_images_are_uniformly_random_crops(padding, pad, mode):
  batch = np.repeat(IMAGES[:1], 2000, axis=0)
  found = preprocessing.augment(batch, [5, 6], padding, pad).numpy()
  all_crops = crops(IMAGES[0], padding, mode)
  table = {crop.tobytes(): place for *place, crop in all_crops}
  places = np.array([table[x.tobytes()] for x in found])
  share = 1 / (2 * padding + 1)
  for axis in (0, 1):
    shares = np.bincount(places[:, axis]) / 2000
    error = np.sqrt(share * (1 - share) / 2000)
    np.testing.assert_allclose(shares, share, atol=5 * error)
  assert abs(places[:, 2].mean() - 0.5) < 5 * 0.5 / np.sqrt(2000)
  # The three draws are independent.
  correlation = np.corrcoef(places.T)[np.triu_indices(3, 1)]
  assert np.abs(correlation).max() < 5 / np.sqrt(2000)


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
  # The error of a variance is relative, sqrt(2 / size).
  wanted = pytest.approx((0.08 * 255) ** 2 + 1 / 12, rel=0.03)
  assert first.astype(float).var() == wanted


def test_brightness_and_contrast_equal_values_computed_by_hand():
  x = np.uint8([[[[0], [100]], [[200], [100]]]])
  brighter = corruptions.corrupt(x, 'brightness', 2, seed=0)
  assert brighter.ravel().tolist() == [51, 151, 251, 151]
  flatter = corruptions.corrupt(x, 'contrast', 2, seed=0)
  assert flatter.ravel().tolist() == [50, 100, 150, 100]
