"""Compute features of a data set with a pre-trained network.

  python -m experiments.features --run=runs/pretrained --output=features.npz
  python -m experiments.features --network=my_module:network \\
    --dataset=cifar10 --output=features.npz
  python -m experiments.run --dataset=features.npz --model=logistic ...

With --run, features are the outputs of the last hidden layer, and examples that
the network was trained on are excluded. With --network, they are what a
function returns for a batch of raw examples (images are uint8), from any
library. Test examples stay test examples. A command with --network that was
interrupted continues from the folder OUTPUT.parts. Exit code 2: a flag or a
file is wrong, and nothing was written.
"""

import functools
import shutil

from absl import flags
import numpy as np

from bfl_tf import analysis, data, files
from bfl_tf.analysis import features
from bfl_tf.data import names
from experiments import command_line, finished

flags.adopt_module_key_flags(finished)
_DATASET = flags.DEFINE_string(
  'dataset',
  None,
  'Data set, as for bfl-tf run; empty: the data set of the run.',
)
_NETWORK = flags.DEFINE_string(
  'network',
  None,
  'Function from a batch of raw examples to features, or tf_keras model, as '
  'package.module:name, in place of --run.',
)
_LIKE = flags.DEFINE_string(
  'like',
  None,
  'Data set of images, with --network: the test images of --dataset are '
  'resized to its shape and written without labels, for out-of-distribution '
  'detection.',
)
_TRAIN_SPLIT = flags.DEFINE_string(
  'train_split', 'train', 'TFDS split of the training examples.'
)
_TEST_SPLIT = flags.DEFINE_string(
  'test_split', 'test', 'TFDS split of the test examples.'
)
_OUTPUT = flags.DEFINE_string('output', None, 'Path of the .npz file to write.')


def main() -> None:
  """Writes the file and prints its number of examples and features."""
  if not _OUTPUT.value:
    command_line.fail('--output is missing: name an .npz file.')
  if _NETWORK.value:
    if not _DATASET.value:
      command_line.fail('--dataset is missing: --network needs a data set.')
    path = finished.output(_OUTPUT.value, '.npz', _DATASET.value)
    parts = path.with_name(f'{path.name}.parts')
    found = _of_network(_DATASET.value, parts)
  else:
    run = finished.path()
    trained = analysis.load(run)
    name = _DATASET.value or trained.config.dataset
    path = finished.output(_OUTPUT.value, '.npz', name)
    splits = {
      'train_split': _TRAIN_SPLIT.value, 'test_split': _TEST_SPLIT.value,
    }  # fmt: skip
    dataset = features.read(trained.config, name, **splits)
    found = features.of_dataset(trained, dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
  with files.replacing(path) as new, new.open('wb') as file:
    np.savez_compressed(file, **found)
  if _NETWORK.value:
    shutil.rmtree(parts)
  train, test = found['x_train'], found.get('x_test', ())
  print(
    f'{len(train)} examples for clients and {len(test)} to test, '
    f'{train.shape[1]} features each, in {path}'
  )


def _of_network(name, parts):
  compute = functools.partial(features.computed, _NETWORK.value, folder=parts)
  splits = {'train_split': _TRAIN_SPLIT.value, 'test_split': _TEST_SPLIT.value}
  if not _LIKE.value:
    return features.arrays(data.load(name, **splits), compute)
  is_tfds = names.kind(name) == 'tfds'
  images = data.load_unlabeled(
    name,
    split=_TEST_SPLIT.value if is_tfds else 'train',
    like=data.load(_LIKE.value),
    resize=True,
    flag='dataset',
  )
  return {'x_train': compute(images)}


if __name__ == '__main__':
  command_line.main(main)
