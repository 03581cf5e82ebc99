"""Tests of data sets: built-in sets, functions and validation."""

import numpy as np
import pytest

from bfl_tf import data
from experiments.papers.fedbe import swiss_roll


@pytest.mark.parametrize(
  'name, shape, dtype, num_classes, sizes',
  [
    ('digits', (8, 8, 1), np.uint8, 10, (1438, 359)),
    ('breast_cancer', (30,), np.float32, 2, (455, 114)),
    ('wine', (13,), np.float32, 3, (142, 36)),
  ],
)
def test_built_in_sets_have_their_shapes_and_a_fixed_test_split(
  name, shape, dtype, num_classes, sizes
):
  dataset = data.load(name, seed=1)
  assert dataset.input_shape == shape
  assert dataset.num_classes == num_classes
  assert (len(dataset.train.y), len(dataset.test.y)) == sizes
  assert dataset.train.x.dtype == dataset.test.x.dtype == dtype
  assert dataset.train.y.dtype == np.int32
  assert dataset.validation.x.shape == (0, *shape)
  whole = np.concatenate([dataset.train.y, dataset.test.y])
  share = np.bincount(dataset.test.y) / np.bincount(whole)
  assert np.abs(share - 0.2).max() < 0.02
  again = data.load(name, seed=2)
  assert np.array_equal(dataset.test.x, again.test.x)


def test_swiss_roll_without_noise_is_three_arms_a_third_of_a_turn_apart():
  rng = np.random.default_rng(0)
  points, labels = swiss_roll.draw(rng, 50, noise=0.0)
  whole = points @ [1, 1j]
  turns = np.angle(whole) / (2 * np.pi) - np.abs(whole) - labels / 3
  np.testing.assert_allclose(turns, np.rint(turns), atol=1e-6)
  assert 0.1 <= np.abs(whole).min() < np.abs(whole).max() <= 1


def test_each_training_image_is_in_the_validation_split_or_in_the_rest():
  whole = data.load('digits').train
  parts = data.load('digits', validation_split=0.25)
  assert len(parts.validation.y) == round(0.25 * len(whole.y))
  both = np.concatenate([parts.train.x, parts.validation.x])
  assert sorted(map(bytes, both)) == sorted(map(bytes, whole.x))
  with pytest.raises(ValueError, match='--validation_split'):
    data.load('digits', validation_split=1e-4)


def arrays():
  x = np.arange(12, dtype=np.float32).reshape(6, 2)
  return x, np.arange(6) % 2, x, np.arange(6) % 2


def a_dataset():
  return data.from_arrays('mine', *arrays())


def nothing():
  return None


def wider():
  x, y, *_ = arrays()
  return x, y, np.ones([6, 3]), y


def test_a_user_supplied_function_may_return_the_data_set():
  for function in ('arrays', 'a_dataset'):
    dataset = data.load(f'test_loading:{function}')
    assert dataset.input_shape == (2,)
    assert dataset.num_classes == 2
  for name in ('wider', 'absent'):
    with pytest.raises(ValueError, match=f'^--dataset=test_loading:{name}'):
      data.load(f'test_loading:{name}')
  with pytest.raises(TypeError, match='NoneType'):
    data.load('test_loading:nothing')
