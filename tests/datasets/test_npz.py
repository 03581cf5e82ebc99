"""A user's file: good ones load, each kind of bad one is refused by name."""

import zipfile

import numpy as np
import pytest

from bfl_tf import archives, datasets

IMAGES = np.zeros((6, 5, 4), np.uint8)
FEATURES = np.ones((6, 3))
LABELS = np.array([0, 1, 2, 0, 1, 2])


def write(folder, **changes):
  arrays = {
    'x_train': FEATURES,
    'y_train': LABELS,
    'x_test': FEATURES,
    'y_test': LABELS,
  }
  arrays |= changes
  path = str(folder / 'file.npz')
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  return path


@pytest.mark.parametrize(
  'x, shape, dtype',
  [
    (FEATURES, (3,), np.float32),
    (FEATURES.astype(np.uint8), (3,), np.float32),
    (IMAGES, (5, 4, 1), np.uint8),
    (IMAGES[..., None], (5, 4, 1), np.uint8),
    (np.zeros((6, 5, 4, 2)), (5, 4, 2), np.float32),
  ],
)
def test_good_files(tmp_path, x, shape, dtype):
  dataset = datasets.load(write(tmp_path, x_train=x, x_test=x))
  assert dataset.input_shape == shape
  assert dataset.train.x.dtype == dtype
  assert dataset.num_classes == 3
  assert dataset.train.y.dtype == np.int32


@pytest.mark.parametrize(
  'labels', [LABELS * 1.0, LABELS[:, None], np.eye(3)[LABELS], LABELS == 1]
)
def test_labels_that_say_the_same(tmp_path, labels):
  path = write(tmp_path, y_train=labels, y_test=labels)
  dataset = datasets.load(path)
  wanted = LABELS == 1 if labels.dtype == bool else LABELS
  assert dataset.train.y.tolist() == wanted.astype(int).tolist()
  assert dataset.train.y.dtype == np.int32


def test_integer_features_are_floats(tmp_path):
  x = np.arange(-9, 9).reshape(6, 3)
  dataset = datasets.load(write(tmp_path, x_train=x, x_test=x))
  assert dataset.train.x.dtype == np.float32
  np.testing.assert_array_equal(dataset.train.x, x)


def test_validation_from_a_file(tmp_path):
  path = write(tmp_path, x_train=np.ones((60, 3)), y_train=np.arange(60) % 3)
  dataset = datasets.load(path, validation_split=0.5)
  assert np.bincount(dataset.validation.y).tolist() == [10, 10, 10]


def test_sites_and_names(tmp_path):
  names = np.array(['red', 'rose', 'white'])
  sites = np.array([b'n', b's'] * 3)
  path = write(
    tmp_path, client_ids=sites, client_ids_test=sites, class_names=names
  )
  dataset = datasets.load(path)
  assert dataset.class_names == ('red', 'rose', 'white')
  assert dataset.client_ids.tolist() == ['n', 's'] * 3
  assert dataset.test_ids.tolist() == ['n', 's'] * 3


def test_one_table_is_split_by_site(tmp_path):
  path = str(tmp_path / 'whole.npz')
  x, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 3
  np.savez(path, x=x, y=y, client_ids=np.arange(60) // 20)
  dataset = datasets.load(path, test_fraction=0.25, num_classes=5)
  assert dataset.num_classes == 5
  assert np.bincount(dataset.test_ids).tolist() == [5, 5, 5]
  np.testing.assert_array_equal(x[dataset.rows], dataset.train.x)


BAD = {
  r'client_ids must be integers or texts \[6\]': {'client_ids': LABELS[:5]},
  'class_names has a name twice': {'class_names': ['a', 'b', 'a']},
  'class_names has 2 names for 3 classes': {'class_names': ['a', 'b']},
  'lacks x_test, y_test': {'x_test': None, 'y_test': None},
  'x_train has 5 examples, y_train has 6': {'x_train': FEATURES[:5]},
  'x_train has values that are not finite in float32': {
    'x_train': FEATURES * 1e300
  },
  'y_train is float64 with fractions, a regression target: Class': {
    'y_train': LABELS + 0.5
  },
  r'y_train has a label beyond 2\^31': {'y_train': LABELS * 1e300},
  'y_train has the negative label -1': {'y_train': LABELS - 1},
  'y_train has no example of class 1': {'y_train': LABELS * 2},
  'y_train has no example of class 0': {'y_train': LABELS + 1},
  'y_test has label 3, out of range': {'y_test': LABELS + 1},
  'y_test has label 1099511627778, out of range': {'y_test': LABELS + 2**40},
  'y_test must be integer classes': {'y_test': LABELS[:, None, None]},
  "y_train has texts, as '0': number them": {'y_train': LABELS.astype(str)},
  'y_train of shape .* is not one-hot': {'y_train': np.ones((6, 3))},
  'y_train has no class but 1': {'y_train': LABELS * 0 + 1},
  'x_train has values that are not finite': {'x_train': FEATURES * np.nan},
  'x_test has values that are not finite': {'x_test': FEATURES * 1e300},
  'x_train must be numbers, got <U1': {'x_train': FEATURES.astype('<U1')},
  'x_train has shape .* images without a channel are uint8': {
    'x_train': np.ones((6, 5, 4))
  },
  'x_train must be images .* got shape': {'x_train': np.ones(6)},
  'x_test is empty': {'x_test': FEATURES[:0], 'y_test': LABELS[:0]},
  'x_train .* and x_test .* must agree': {'x_test': np.ones((6, 4))},
  'cannot be read as an .npz file: Object arrays': {
    'x_train': np.array([None] * 6)
  },
}


@pytest.mark.parametrize('message', BAD)
def test_bad_arrays_are_refused_by_name(tmp_path, message):
  path = write(tmp_path, **BAD[message])
  with pytest.raises(ValueError, match=message) as error:
    datasets.load(path)
  assert f'--dataset={path}' in str(error.value)
  assert '\n' not in str(error.value)


@pytest.mark.parametrize(
  'changes, message',
  [
    ({'y': LABELS[:5]}, 'x has 6 examples, y has 5'),
    ({'x': FEATURES[:5]}, 'x has 5 examples, y has 6'),
    ({'x': np.float64(1)}, r'x is empty, of shape \(\)'),
    ({'y': np.array([], str)}, r'y is empty, of shape \(0,\)'),
    ({'x': FEATURES * np.nan}, 'x has values that are not finite'),
    (
      {'x': FEATURES[:5], 'client_ids': LABELS},
      r'client_ids must be integers or texts \[5\]',
    ),
  ],
)
def test_one_table_with_bad_arrays(tmp_path, changes, message):
  path = tmp_path / 'whole.npz'
  np.savez(path, **({'x': FEATURES, 'y': LABELS} | changes))
  with pytest.raises(ValueError, match=message) as error:
    datasets.load(str(path))
  assert str(error.value).startswith(f'--dataset={path}')


def test_only_one_class_is_refused(tmp_path):
  zeros = LABELS * 0
  with pytest.raises(ValueError, match='y_train has no class but 0'):
    datasets.load(write(tmp_path, y_train=zeros, y_test=zeros))


@pytest.mark.parametrize('content', [b'', b'PK\x03\x04nonsense', b'text', None])
def test_unreadable_files(tmp_path, content):
  path = tmp_path / 'file.npz'
  if content is not None:
    path.write_bytes(content)
  with pytest.raises(ValueError, match=r'file\.npz cannot be read'):
    datasets.load(str(path))


def test_a_single_array_is_no_archive(tmp_path):
  path = tmp_path / 'file.npz'
  with path.open('wb') as file:
    np.save(file, FEATURES)
  with pytest.raises(ValueError, match='it holds a single array'):
    datasets.load(str(path))


def test_a_header_that_promises_more_than_memory_holds(tmp_path):
  path = tmp_path / 'file.npz'
  header = {'descr': '<f8', 'fortran_order': False, 'shape': (10**12, 100)}
  with zipfile.ZipFile(path, 'w') as archive, archive.open('x.npy', 'w') as x:
    np.lib.format.write_array_header_1_0(x, header)
  with pytest.raises(ValueError, match=r'cannot be read as an .npz file: Una'):
    datasets.load(str(path))


def test_a_damaged_file_is_named(tmp_path):
  whole = tmp_path / 'whole.npz'
  arrays = {'x': np.random.default_rng(0).normal(size=[40, 3]), 'y': LABELS}
  np.savez_compressed(whole, **arrays)
  path, data = tmp_path / 'flipped.npz', whole.read_bytes()
  wrong = 0
  for bit in range(0, 8 * len(data), 23):
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)
    try:
      archives.read(path)
    except ValueError as error:
      assert str(error).startswith(f'{path} cannot be read as an .npz file: ')
      wrong += 1
  assert wrong > 100


@pytest.mark.parametrize('kind', [str, bytes])
@pytest.mark.parametrize('whole', [True, False])
def test_a_file_may_name_classes_that_it_does_not_have(tmp_path, kind, whole):
  names = [b'cat', b'cow', b'dog'] if kind is bytes else ['cat', 'cow', 'dog']
  y = np.array([0, 2, 0, 2, 0, 2])
  if whole:
    path = str(tmp_path / 'whole.npz')
    np.savez(path, x=FEATURES, y=y, class_names=names)
  else:
    path = write(tmp_path, y_train=y, y_test=y, class_names=names)
  dataset = datasets.load(path)
  assert dataset.num_classes == 3
  assert dataset.class_names == ('cat', 'cow', 'dog')


def test_names_in_bytes_are_utf_8_and_a_class_of_one_row_is_not_left_out(
  tmp_path,
):
  names = ['Zürich'.encode(), b'b', b'c']
  path = write(tmp_path, class_names=names)
  assert datasets.load(path).class_names == ('Zürich', 'b', 'c')
  with pytest.raises(ValueError, match='class_names is not in UTF-8'):
    datasets.load(write(tmp_path, class_names=[b'\xff', b'b', b'c']))
  y = np.array([0, 1] * 20 + [2])
  whole = str(tmp_path / 'whole.npz')
  np.savez(whole, x=np.ones([41, 3]), y=y, class_names=['a', 'b', 'c'])
  with pytest.raises(ValueError, match="class 'c' has too few rows"):
    datasets.load(whole, test_fraction=0.95)
