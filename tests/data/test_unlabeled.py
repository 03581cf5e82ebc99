"""Tests of unlabeled data of the server."""

import numpy as np
import test_loading

from bfl_tf import data


def clients(*shape, dtype=np.uint8):
  """Returns a data set with images of a shape."""
  x, y = np.ones((4, *shape), dtype), [0, 1, 0, 1]
  return data.from_arrays('clients', x, y, x, y)


def load(name, like, split='train', resize=False):
  return data.load_unlabeled(name, split=split, like=like, resize=resize)


def save(folder, images):
  path = str(folder / 'server.npz')
  np.savez(path, x_train=images)
  return path


def test_every_kind_of_data_set_gives_its_training_inputs(tmp_path):
  like = clients(8, 8, 1)
  assert np.array_equal(load('digits', like), data.load('digits').train.x)
  images = data.load('digits').test.x[..., 0]  # Without channels and labels.
  assert np.array_equal(load(save(tmp_path, images), like)[..., 0], images)
  like = clients(2, dtype=np.float32)
  for function in ('arrays', 'a_dataset'):
    loaded = load(f'test_loading:{function}', like)
    assert np.array_equal(loaded, test_loading.arrays()[0])


def test_halved_images_equal_those_computed_by_hand(tmp_path):
  """The antialiasing filter over four pixels is 1 3 3 1, cut at the border."""
  row = np.array([10, 20, 40, 80, 160, 240], np.uint8)
  images = np.tile(row, (1, 6, 1))
  resized = load(save(tmp_path, images), clients(3, 3, 1), resize=True)
  sums = (
    3 * 10 + 3 * 20 + 40,
    20 + 3 * 40 + 3 * 80 + 160,
    80 + 3 * 160 + 3 * 240,
  )
  exact = np.array(sums) / [7, 8, 7]
  assert resized.dtype == np.uint8
  assert np.all(np.abs(resized[0, :, :, 0] - exact) <= 0.5)


def test_converted_channels_equal_those_computed_by_hand(tmp_path):
  colours = np.array([[255, 0, 0], [0, 255, 0], [255, 255, 255]], np.uint8)
  images = np.tile(colours[:, None, None], (1, 8, 8, 1))
  grey = load(save(tmp_path, images), clients(8, 8, 1), resize=True)
  assert grey.shape == (3, 8, 8, 1)
  assert grey[:, 0, 0, 0].tolist() == [76, 150, 255]
  colour = load('digits', clients(8, 8, 3), resize=True)
  digits = data.load('digits').train.x
  assert np.array_equal(colour, np.repeat(digits, 3, axis=-1))
