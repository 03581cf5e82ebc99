"""Tiny-ImageNet (Le & Yang 2015), which TensorFlow Datasets does not have.

Importing this module registers the set there. The `test` folder of the archive
has no labels and is left out; papers test on `validation`. Size and checksum
agree with independent public records of the archive.
"""

from collections.abc import Callable, Iterator
import os
from typing import Any
import zipfile

import tensorflow_datasets as tfds
from tensorflow_datasets.core.download import checksums

URL = 'http://cs231n.stanford.edu/tiny-imagenet-200.zip'
_SHA256 = '6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821'
_ROOT = 'tiny-imagenet-200'


class TinyImagenet(tfds.core.GeneratorBasedBuilder):
  """200 classes of ImageNet at 64x64: 500 training images each, 50 to test."""

  VERSION = tfds.core.Version('1.0.0')
  # TensorFlow Datasets would otherwise read a checksums.tsv in this folder.
  url_infos = {
    URL: checksums.UrlInfo(
      size=248100043, checksum=_SHA256, filename='tiny-imagenet-200.zip'
    )
  }

  def _info(self) -> tfds.core.DatasetInfo:
    image = tfds.features.Image(shape=(64, 64, 3), encoding_format='jpeg')
    return tfds.core.DatasetInfo(
      builder=self,
      description=type(self).__doc__,
      features=tfds.features.FeaturesDict(
        {
          'id': tfds.features.Text(),
          'image': image,
          'label': tfds.features.ClassLabel(num_classes=200),
        }
      ),
      supervised_keys=('image', 'label'),
      homepage=URL,
    )

  def _split_generators(self, dl_manager: Any) -> dict[str, Iterator]:
    path = os.fspath(dl_manager.download(URL))
    with zipfile.ZipFile(path) as archive:
      wnids = archive.read(f'{_ROOT}/wnids.txt').decode().split()
    self.info.features['label'].names = wnids
    return {
      'train': self._generate_examples(path, _train_files),
      'validation': self._generate_examples(path, _validation_files),
    }

  def _generate_examples(
    self,
    path: str,
    files: Callable[[zipfile.ZipFile], Iterator[tuple[str, str]]],
  ) -> Iterator[tuple[str, dict[str, Any]]]:
    # The archive is not extracted, because it has 120 000 small files.
    with zipfile.ZipFile(path) as archive:
      for file, wnid in files(archive):
        key = file.rpartition('/')[2]
        yield key, {'id': key, 'image': archive.read(file), 'label': wnid}


def _train_files(archive):
  for path in archive.namelist():
    parts = path.split('/')  # root, train, wnid, images, wnid_0.JPEG
    if parts[1] == 'train' and path.endswith('.JPEG'):
      yield path, parts[2]


def _validation_files(archive):
  annotations = archive.read(f'{_ROOT}/val/val_annotations.txt').decode()
  for line in annotations.splitlines():
    file, wnid, *_ = line.split('\t')  # The rest is a bounding box.
    yield f'{_ROOT}/val/images/{file}', wnid
