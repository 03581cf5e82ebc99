"""Tests of preprocessing in the graph."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import data
from bfl_tf.data import preprocessing

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


@tf.function(
  input_signature=[
    tf.TensorSpec([None, 9, 7, 3], tf.uint8),
    tf.TensorSpec([2], tf.int32),
  ]
)
def augment(x, seed):
  return preprocessing.augment(x, seed)


def crops(image, padding=4, mode='constant'):
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
  assert augment(IMAGES[:3], [1, 2]).shape == (3, 9, 7, 3)
  assert augment(IMAGES[:0], [1, 2]).shape == (0, 9, 7, 3)


def test_augmented_images_are_uniformly_random_crops():
  batch = np.repeat(IMAGES[:1], 2000, axis=0)
  table = {crop.tobytes(): place for *place, crop in crops(IMAGES[0])}
  places = np.array(
    [table[x.tobytes()] for x in augment(batch, [5, 6]).numpy()]
  )
  for axis in (0, 1):
    counts = np.bincount(places[:, axis], minlength=9)
    error = np.sqrt(2000 * (1 / 9) * (8 / 9))
    assert np.abs(counts - 2000 / 9).max() < 5 * error
  assert abs(places[:, 2].mean() - 0.5) < 5 * 0.5 / np.sqrt(2000)
  # The three draws are independent.
  correlation = np.corrcoef(places.T)[np.triu_indices(3, 1)]
  assert np.abs(correlation).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize('pad', preprocessing.PADS)
def test_crops_with_another_padding_reach_every_offset(pad):
  batch = np.repeat(IMAGES[:1], 500, axis=0)
  out = preprocessing.augment(batch, [5, 6], padding=2, pad=pad).numpy()
  found = crops(IMAGES[0], 2, 'reflect' if pad == 'reflect' else 'constant')
  table = {crop.tobytes(): place for *place, crop in found}
  places = np.array([table[x.tobytes()] for x in out])
  assert [set(column) for column in places.T] == [
    {0, 1, 2, 3, 4},
    {0, 1, 2, 3, 4},
    {False, True},
  ]
