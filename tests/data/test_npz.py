"""Tests of .npz data sets."""

import numpy as np
import pytest

from bfl_tf import data

IMAGES = np.zeros((6, 5, 4), np.uint8)
FEATURES = np.ones((6, 3))
LABELS = np.array([0, 1, 2, 0, 1, 2])


def write(folder, **changes):
  names = 'x_train', 'y_train', 'x_test', 'y_test'
  arrays = dict(zip(names, (FEATURES, LABELS) * 2)) | changes
  path = str(folder / 'file.npz')
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  return path


def test_sites_and_class_names_are_read(tmp_path):
  names, sites = ['red', 'rose', 'white'], np.array([b'n', b's'] * 3)
  # No example has the second class.
  y = np.array([0, 2, 0, 2, 0, 2])
  dataset = data.load(
    write(
      tmp_path, y_train=y, y_test=y, client_ids=sites, client_ids_test=sites,
      class_names=names,
    )
  )  # fmt: skip
  assert dataset.class_names == ('red', 'rose', 'white')
  assert dataset.num_classes == 3
  for split in (dataset.train, dataset.test):
    assert split.ids.tolist() == ['n', 's'] * 3


def test_a_file_without_a_test_split_is_split_within_each_site(tmp_path):
  path = str(tmp_path / 'whole.npz')
  x, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 3
  np.savez(path, x=x, y=y, client_ids=np.arange(60) // 20)
  dataset = data.load(path, test_fraction=0.25, num_classes=5)
  assert dataset.num_classes == 5
  assert np.bincount(dataset.test.ids).tolist() == [5, 5, 5]
  np.testing.assert_array_equal(x[dataset.rows], dataset.train.x)


def test_valid_inputs_have_the_expected_shape_and_type(tmp_path):
  integers = np.arange(-9, 9).reshape(6, 3)
  for x, shape, dtype in (
    (integers, (3,), np.float32),
    (FEATURES.astype(np.uint8), (3,), np.float32),
    (IMAGES, (5, 4, 1), np.uint8),
    (IMAGES[..., None], (5, 4, 1), np.uint8),
    (np.zeros((6, 5, 4, 2)), (5, 4, 2), np.float32),
  ):
    dataset = data.load(write(tmp_path, x_train=x, x_test=x))
    assert dataset.input_shape == shape
    assert dataset.train.x.dtype == dtype
    np.testing.assert_array_equal(dataset.train.x.ravel(), x.ravel())
    assert dataset.num_classes == 3


def test_equivalent_label_formats_give_the_same_labels(tmp_path):
  for y in (LABELS * 1.0, LABELS[:, None], np.eye(3)[LABELS], LABELS == 1):
    dataset = data.load(write(tmp_path, y_train=y, y_test=y))
    wanted = LABELS == 1 if y.dtype == bool else LABELS
    assert dataset.train.y.tolist() == wanted.astype(int).tolist()
    assert dataset.train.y.dtype == np.int32


# Pattern of the error and the wrong arrays.
BAD = [
  ('client_ids', {'client_ids': LABELS[:5]}),
  ('class_names', {'class_names': ['a', 'b', 'a']}),
  ('x_test, y_test', {'x_test': None, 'y_test': None}),
  ('x_train has 5 examples', {'x_train': FEATURES[:5]}),
  ('x_train', {'x_train': FEATURES * np.nan}),
  # Unix times within one minute are equal in float32.
  ('x_train, feature 0', {'x_train': LABELS[:, None] + 1.7e9 * FEATURES}),
  ('y_train', {'y_train': LABELS + 0.5}),
  ('y_train', {'y_train': LABELS - 1}),
  ('y_train .* class 1', {'y_train': LABELS * 2}),
  ('y_test has label 3', {'y_test': LABELS + 1}),
  ('x_test', {'x_test': np.ones((6, 4))}),
]


def test_invalid_arrays_raise_an_error_that_names_the_array(tmp_path):
  for named, changes in BAD:
    path = write(tmp_path, **changes)
    with pytest.raises(ValueError, match=named):
      data.load(path)
