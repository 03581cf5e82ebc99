"""Compute features of a data set with a pre-trained network.

  python -m experiments.features --run=runs/pretrained --output=features.npz
  python -m experiments.run --dataset=features.npz --model=logistic ...

Features are the outputs of the last hidden layer. Examples that the network was
trained on are excluded. Test examples stay test examples. Exit code 2: a flag
or a file is wrong, and nothing was written.
"""

from absl import flags
import numpy as np

from bfl_tf import analysis, files
from bfl_tf.analysis import features
from experiments import command_line, finished

flags.adopt_module_key_flags(finished)
_DATASET = flags.DEFINE_string(
  'dataset',
  None,
  'Data set, as for bfl-tf run; empty: the data set of the run.',
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
  run = finished.path()
  if not _OUTPUT.value:
    command_line.fail('--output is missing: name an .npz file.')
  trained = analysis.load(run)
  name = _DATASET.value or trained.config.dataset
  path = finished.output(_OUTPUT.value, '.npz', name)
  found = _features(trained, name)
  path.parent.mkdir(parents=True, exist_ok=True)
  with files.replacing(path) as new, new.open('wb') as file:
    np.savez_compressed(file, **found)
  train, test = found['x_train'], found['x_test']
  print(
    f'{len(train)} examples for clients and {len(test)} to test, '
    f'{train.shape[1]} features each, in {path}'
  )


def _features(trained, name):
  dataset = features.read(
    trained.config,
    name,
    train_split=_TRAIN_SPLIT.value,
    test_split=_TEST_SPLIT.value,
  )
  return features.of_dataset(trained, dataset)


if __name__ == '__main__':
  command_line.main(main)
