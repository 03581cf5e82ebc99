"""Images for the server: from every kind of source, resized by hand."""

import os
import pathlib

import numpy as np
import pytest

from bfl_tf import datasets
from bfl_tf.datasets import unlabeled

SHARED = pathlib.Path(__file__).parents[3] / 'shared' / 'tensorflow_datasets'
REAL = pathlib.Path(os.environ.get('TFDS_DATA_DIR', SHARED))


def clients(*shape, dtype=np.uint8):
  """A data set whose images have that shape."""
  x, y = np.ones((4, *shape), dtype), [0, 1, 0, 1]
  return datasets.from_arrays('clients', x, y, x, y)


def load(name, like, split='train', resize=False):
  return datasets.load_unlabeled(name, split=split, like=like, resize=resize)


def save(folder, images):
  path = str(folder / 'server.npz')
  np.savez(path, x_train=images)
  return path


def random_images(*shape):
  return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def four_arrays():
  x = random_images(6, 8, 8, 1)
  return x, np.arange(6) % 2, x, np.arange(6) % 2


def a_dataset():
  return datasets.from_arrays('mine', *four_arrays())


def nothing():
  return None


def test_own_sets_give_their_training_inputs(tmp_path, monkeypatch):
  like = clients(8, 8, 1)
  assert np.array_equal(load('digits', like), datasets.load('digits').train.x)
  wine = datasets.load('wine')
  assert np.array_equal(load('wine', wine), wine.train.x)
  images = random_images(5, 8, 8)  # No channel, no labels.
  assert np.array_equal(load(save(tmp_path, images), like)[..., 0], images)
  monkeypatch.syspath_prepend(__file__.rpartition('/')[0])
  for function in ('four_arrays', 'a_dataset'):
    loaded = load(f'test_unlabeled:{function}', like)
    assert np.array_equal(loaded, four_arrays()[0])


def test_errors_name_the_flag(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(__file__.rpartition('/')[0])
  like = clients(8, 8, 1)
  np.savez(tmp_path / 'other.npz', x_test=np.ones((2, 3)))
  for name, message in (
    ('test_unlabeled:nothing', 'must return a Dataset or'),
    ('test_unlabeled:absent', 'cannot be imported'),
    ('absent.npz', 'cannot be read'),
    (str(tmp_path / 'other.npz'), 'lacks x_train; it needs x_train.'),
    ('no_such_set_at_all', 'is unknown'),
  ):
    with pytest.raises(ValueError, match=message) as error:
      load(name, like)
    assert str(error.value).startswith(f'--server_dataset={name}')
  with pytest.raises(ValueError, match='--server_split=test slices TFDS sets'):
    load('digits', like, split='test')


@pytest.mark.parametrize(
  'like, resize, message',
  [
    (clients(8, 8, 3), False, r'\(8, 8, 1\), .* \(8, 8, 3\): set --resize'),
    (clients(4, 4, 1), False, r'\(8, 8, 1\), .* \(4, 4, 1\): set --resize'),
    (clients(64), True, 'features cannot be resized'),
    (clients(8, 8, 2), True, 'only 1 and 3 are converted'),
    (clients(8, 8, 1, dtype=np.float32), True, 'store both as float32'),
  ],
)
def test_another_shape_or_type_is_refused(like, resize, message):
  with pytest.raises(ValueError, match=message) as error:
    load('digits', like, resize=resize)
  assert str(error.value).startswith('--server_dataset=digits has uint8 of sha')


def test_halving_by_hand(tmp_path):
  """Antialiased: a triangle over four pixels, 1 3 3 1, cut at the border."""
  row = np.array([10, 20, 40, 80, 160, 240], np.uint8)
  images = np.tile(row, (1, 6, 1))
  resized = load(save(tmp_path, images), clients(3, 3, 1), resize=True)
  exact = [
    (3 * 10 + 3 * 20 + 40) / 7,  # 18.57
    (20 + 3 * 40 + 3 * 80 + 160) / 8,  # 67.5
    (80 + 3 * 160 + 3 * 240) / 7,  # 182.86
  ]
  assert resized.dtype == np.uint8
  assert np.all(np.abs(resized[0, :, :, 0] - exact) <= 0.5)


def test_channels_by_hand(tmp_path):
  colours = np.array([[255, 0, 0], [0, 255, 0], [255, 255, 255]], np.uint8)
  images = np.tile(colours[:, None, None], (1, 8, 8, 1))
  grey = load(save(tmp_path, images), clients(8, 8, 1), resize=True)
  assert grey.shape == (3, 8, 8, 1)
  assert grey[:, 0, 0, 0].tolist() == [76, 150, 255]
  colour = load('digits', clients(8, 8, 3), resize=True)
  digits = datasets.load('digits').train.x
  assert np.array_equal(colour, np.repeat(digits, 3, axis=-1))


@pytest.mark.parametrize('size', [3, 8, 20])
def test_a_constant_stays_and_floats_are_not_rounded(tmp_path, size):
  images = np.full((2, 8, 8, 3), 200, np.uint8)
  like = clients(size, size, 3)
  assert np.all(load(save(tmp_path, images), like, resize=True) == 200)
  like = clients(size, size, 3, dtype=np.float32)
  path = save(tmp_path, np.full((2, 8, 8, 3), 0.25, np.float32))
  np.testing.assert_allclose(load(path, like, resize=True), 0.25, rtol=1e-6)


def test_batches_change_nothing(tmp_path, monkeypatch):
  path = save(tmp_path, random_images(7, 8, 8, 3))
  whole = load(path, clients(5, 5, 3), resize=True)
  monkeypatch.setattr(unlabeled, '_CHUNK', 2 * 8 * 8 * 3)
  assert np.array_equal(load(path, clients(5, 5, 3), resize=True), whole)


@pytest.mark.parametrize(
  'name, split', [('cifar100', 'test'), ('tiny_imagenet', 'validation')]
)
def test_real_sets_whose_train_split_is_not_there(name, split, monkeypatch):
  if not (REAL / name).is_dir():
    pytest.skip(f'{name} is not prepared in {REAL}')
  monkeypatch.setenv('TFDS_DATA_DIR', str(REAL))
  like = clients(32, 32, 3)
  images = load(name, like, split=f'{split}[:500]', resize=True)
  assert images.shape == (500, 32, 32, 3)
  assert images.dtype == np.uint8
  assert 20 < images.std() < 120
  with pytest.raises(ValueError, match='--server_split=absent is no split of'):
    load(name, like, split='absent')
