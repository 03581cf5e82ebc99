"""TFDS by name: small sets made here without a network, real ones if there."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow_datasets as tfds

from bfl_tf import datasets
from bfl_tf.datasets import builtin

SHARED = pathlib.Path(__file__).parents[3] / 'shared' / 'tensorflow_datasets'
REAL = pathlib.Path(os.environ.get('TFDS_DATA_DIR', SHARED))


class _Toy(tfds.core.GeneratorBasedBuilder):
  """Six classes of images, each filled with its label."""

  VERSION = tfds.core.Version('1.0.0')
  shape = (4, 4, 3)
  target = tfds.features.ClassLabel(num_classes=6)
  supervised = ('image', 'label')

  def _info(self):
    return tfds.core.DatasetInfo(
      builder=self,
      features=tfds.features.FeaturesDict(
        {
          'image': tfds.features.Image(shape=self.shape),
          'label': self.target,
        }
      ),
      supervised_keys=self.supervised,
    )

  def _split_generators(self, dl_manager):
    return {
      'train': self._generate_examples(60),
      'test': self._generate_examples(12),
    }

  def _generate_examples(self, count):
    for i in range(count):
      image = np.full((4, 4, 3), i % 6, np.uint8)
      yield i, {'image': image, 'label': i % 6}


class BflToyImages(_Toy):
  """A good one."""


class BflToyRegression(_Toy):
  """A label that is a number."""

  target = tfds.features.Scalar(np.float32)


class BflToyUnsupervised(_Toy):
  """No label."""

  supervised = None


class BflToySizes(_Toy):
  """Images of any size."""

  shape = (None, None, 3)


class BflToyOffline(_Toy):
  """A set that has to be downloaded where there is no network."""

  def _split_generators(self, dl_manager):
    raise ConnectionError('no route to host\nsecond line')


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path))
  return tmp_path


def test_a_set_is_prepared_once_and_loaded_whole(data_dir):
  dataset = datasets.load('bfl_toy_images', validation_split=0.5)
  assert dataset.input_shape == (4, 4, 3)
  assert dataset.num_classes == 6
  assert dataset.train.x.dtype == np.uint8
  assert np.bincount(dataset.train.y).tolist() == [5] * 6
  assert np.bincount(dataset.validation.y).tolist() == [5] * 6
  assert np.all(dataset.test.x[:, 0, 0, 0] == dataset.test.y)
  assert (data_dir / 'bfl_toy_images').is_dir()


def test_splits_are_slices(data_dir):
  dataset = datasets.load(
    'bfl_toy_images', train_split='train[:50%]', test_split='train[50:]+test'
  )
  assert (len(dataset.train.y), len(dataset.test.y)) == (30, 22)


@pytest.mark.parametrize('split', ['trian', 'train[:x]', 'train[:200%]', ''])
def test_bad_splits(data_dir, split):
  with pytest.raises(ValueError, match='is no split of bfl_toy_images, which'):
    datasets.load('bfl_toy_images', test_split=split)


def test_both_splits_are_checked_before_one_is_read(data_dir, monkeypatch):
  monkeypatch.setattr(_Toy, 'as_dataset', None)
  with pytest.raises(ValueError, match=r'--train_split=x is no .* test, train'):
    datasets.load('bfl_toy_images', train_split='x')


def test_an_empty_split(data_dir):
  with pytest.raises(ValueError, match=r'--train_split=train\[:0\] holds no'):
    datasets.load('bfl_toy_images', train_split='train[:0]')


@pytest.mark.parametrize(
  'name, message',
  [
    ('bfl_toy_image', "is unknown. Did you mean 'bfl_toy_images'"),
    ('no_such_set_at_all', 'is unknown'),
    ('swis_roll', "Did you mean 'swiss_roll'"),
    ('bfl_toy_images:9.9.9', 'cannot be loaded at version 9.9.9'),
    ('not a name', 'Parsing builder name'),
    ('bfl_toy_regression', 'not classes: Classification only'),
    ('bfl_toy_unsupervised', 'Classification only'),
    ('bfl_toy_sizes', 'images of one size only'),
    ('bfl_toy_offline', 'could not be downloaded .no route.*TFDS_DATA_DIR'),
  ],
)
def test_refusals_are_one_line(data_dir, name, message):
  with pytest.raises(ValueError, match=message) as error:
    datasets.load(name)
  assert str(error.value).startswith(f'--dataset={name}')
  assert '\n' not in str(error.value)


@pytest.mark.parametrize(
  'name, split, message',
  [
    ('nothing', 'train', '--dataset=nothing is unknown'),
    ('bfl_toy_images', 'x', '--train_split=x is no split of bfl_toy_images'),
    ('nowhere.csv', 'train', '--dataset=nowhere.csv'),
    ('nowhere.npz', 'train', '--dataset=nowhere.npz'),
    ('wine', 'x', '--train_split=x and --test_split=test slice TFDS'),
    ('table.parquet', 'train', '--dataset=table.parquet: a file must be'),
  ],
)
def test_what_is_not_there_is_refused_unread(
  data_dir, monkeypatch, name, split, message
):
  monkeypatch.setattr(_Toy, 'as_dataset', None)
  with pytest.raises(ValueError, match=message):
    datasets.check_there(name, split, 'test')


@pytest.mark.parametrize(
  'name', ['wine', 'bfl_toy_images', 'there.csv', 'never_imported:data']
)
def test_what_is_there_is_not_read(data_dir, monkeypatch, name):
  monkeypatch.setattr(_Toy, 'as_dataset', None)
  monkeypatch.setitem(builtin.BUILTIN, 'wine', None)
  monkeypatch.chdir(data_dir)
  (data_dir / 'there.csv').write_text('no table')
  datasets.check_there(name, 'train', 'test')


def test_a_file_that_is_nearly_meant(data_dir, tmp_path, monkeypatch):
  (tmp_path / 'wine_scaled.npz').touch()
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match=r"Did you mean 'wine_scaled\.npz'\?"):
    datasets.load('wine_scaled')


@pytest.mark.parametrize(
  'name, shape', [('mnist', (28, 28, 1)), ('cifar10', (32, 32, 3))]
)
def test_real_sets(name, shape, monkeypatch):
  if not (REAL / name).is_dir():
    pytest.skip(f'{name} is not prepared in {REAL}')
  monkeypatch.setenv('TFDS_DATA_DIR', str(REAL))
  dataset = datasets.load(name, train_split='train[:2000]')
  assert dataset.input_shape == shape
  assert dataset.num_classes == 10
  assert len(dataset.train.y) == 2000
  assert len(dataset.test.y) == 10000
  assert np.bincount(dataset.test.y).min() > 800
  assert dataset.train.x.dtype == np.uint8
