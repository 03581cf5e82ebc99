"""Tests of TFDS data sets, with small generated sets."""

import signal

import binaries
import numpy as np
import pytest
import tensorflow_datasets as tfds

from bfl_tf import data


class BflToyImages(tfds.core.GeneratorBasedBuilder):
  """Six classes of images, each filled with its label."""

  VERSION = tfds.core.Version('1.0.0')
  shape = (4, 4, 3)
  target = tfds.features.ClassLabel(num_classes=6)

  def _info(self):
    image = tfds.features.Image(shape=self.shape)
    features = {'image': image, 'label': self.target}
    return tfds.core.DatasetInfo(
      builder=self,
      features=tfds.features.FeaturesDict(features),
      supervised_keys=('image', 'label'),
    )

  def _split_generators(self, dl_manager):
    sizes = {'train': 60, 'test': 12}
    return {name: self._generate_examples(n) for name, n in sizes.items()}

  def _generate_examples(self, count):
    for i in range(count):
      image = np.full((4, 4, 3), i % 6, np.uint8)
      yield i, {'image': image, 'label': i % 6}


class BflToyRegression(BflToyImages):
  """A data set whose label is a real number."""

  target = tfds.features.Scalar(np.float32)


class BflToySizes(BflToyImages):
  """Images of any size."""

  shape = (None, None, 3)


class BflToyOffline(BflToyImages):
  """A data set whose download fails."""

  def _split_generators(self, dl_manager):
    raise ConnectionError('no route to host\nsecond line')


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path))
  return tmp_path


def test_a_data_set_is_prepared_and_loaded(data_dir):
  dataset = data.load('bfl_toy_images', validation_split=0.5)
  assert dataset.input_shape == (4, 4, 3)
  assert dataset.num_classes == 6
  assert dataset.train.x.dtype == np.uint8
  for split in (dataset.train, dataset.validation):
    assert np.bincount(split.y).tolist() == [5] * 6
  assert np.all(dataset.test.x[:, 0, 0, 0] == dataset.test.y)
  assert (data_dir / 'bfl_toy_images').is_dir()


def test_invalid_sets_and_splits_are_rejected_before_reading_examples(
  data_dir, monkeypatch
):
  monkeypatch.setattr(BflToyImages, 'as_dataset', None)
  for name in (
    'bfl_toy_image', 'bfl_toy_images:9.9.9', 'table.parquet',
    'bfl_toy_regression', 'bfl_toy_sizes', 'bfl_toy_offline',
  ):  # fmt: skip
    with pytest.raises(ValueError, match=f'--dataset={name}'):
      data.load(name)
  for split in ('trian', 'train[:200%]', '', 'train[:0]'):
    for flag in ('train_split', 'test_split'):
      with pytest.raises(ValueError, match=f'--{flag}'):
        data.load('bfl_toy_images', **{flag: split})


@pytest.mark.process
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_download(tmp_path, monkeypatch, number):
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path / 'sets'))
  # No server listens at this port, so TFDS retries for minutes.
  for scheme in ('http', 'https'):
    monkeypatch.setenv(f'{scheme}_proxy', 'http://127.0.0.1:9')
  flags = ['--dataset=tiny_imagenet', f'--output_dir={tmp_path}/run']
  process = binaries.start('experiments.run', *flags)
  assert any('Downloading tiny_imagenet' in line for line in process.stderr)
  process.send_signal(number)
  process.communicate(timeout=5)
  assert process.returncode == -number
  assert not (tmp_path / 'run').exists()
