"""Tests of Tiny-ImageNet with a small archive."""

import hashlib
import zipfile

import numpy as np
import tensorflow as tf
from tensorflow_datasets.core.download import checksums

from bfl_tf import data
from bfl_tf.data import tiny_imagenet

# The lines of wnids.txt are not sorted.
WNIDS = [f'n{(7 * i) % 200:08}' for i in range(200)]


def jpeg(grey, channels=3):
  image = np.full((64, 64, channels), grey, np.uint8)
  return tf.io.encode_jpeg(image).numpy()


def write_archive(folder):
  """Writes three images of class 5, one of them grey, and two of class 0."""
  path = folder / 'tiny-imagenet-200.zip'
  root = 'tiny-imagenet-200'
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr(f'{root}/', '')
    archive.writestr(f'{root}/wnids.txt', '\n'.join(WNIDS) + '\n')
    for i, (label, channels) in enumerate([(5, 3), (0, 3), (5, 1)]):
      wnid = WNIDS[label]
      file = f'{root}/train/{wnid}/images/{wnid}_{i}.JPEG'
      archive.writestr(file, jpeg(10 * label, channels))
    archive.writestr(f'{root}/train/{wnid}/{wnid}_boxes.txt', '0\t0\t62\t44')
    lines = ''
    for i, label in enumerate([0, 5]):
      archive.writestr(f'{root}/val/images/val_{i}.JPEG', jpeg(100 + label))
      lines += f'val_{i}.JPEG\t{WNIDS[label]}\t0\t32\t44\t62\n'
    archive.writestr(f'{root}/val/val_annotations.txt', lines)
    archive.writestr(f'{root}/test/images/test_0.JPEG', jpeg(0))
  return path


def test_an_archive_is_prepared_and_loaded(tmp_path, monkeypatch):
  path = write_archive(tmp_path)
  content = path.read_bytes()
  digest = hashlib.sha256(content).hexdigest()
  info = checksums.UrlInfo(len(content), digest, path.name)
  monkeypatch.setattr(tiny_imagenet, 'URL', str(path))
  builder = tiny_imagenet.TinyImagenet
  monkeypatch.setattr(builder, 'url_infos', {str(path): info})
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path / 'data'))
  dataset = data.load('tiny_imagenet', test_split='validation')
  assert dataset.num_classes == 200
  assert dataset.input_shape == (64, 64, 3)
  assert sorted(dataset.train.y) == [0, 5, 5]
  assert np.all(dataset.train.x == 10 * dataset.train.y[:, None, None, None])
  assert sorted(dataset.test.y) == [0, 5]
  assert np.all(dataset.test.x == 100 + dataset.test.y[:, None, None, None])
  images = data.load_unlabeled(
    'tiny_imagenet', split='validation', like=dataset, resize=False
  )
  assert np.array_equal(images, dataset.test.x)
  info = builder(data_dir=tmp_path / 'data').info
  assert info.features['label'].names == WNIDS
