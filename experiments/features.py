"""Writes what a pre-trained network's last hidden layer says of a data set.

  python -m experiments.features --run=runs/pretrained --output=features.npz
  python -m experiments.run --dataset=features.npz --model=logistic ...

Of the training examples only those that the network was not trained on: they
are the clients'. The test examples stay apart. Exit code 2: a flag or a file is
wrong, and nothing was written.
"""

from absl import flags
import numpy as np

from bfl_tf import trained as trained_lib
from bfl_tf.trained import features
from experiments import flags as config_flags
from experiments import outputs

_RUN = flags.DEFINE_string('run', None, 'The --output_dir of a finished run.')
_DATASET = flags.DEFINE_string(
  'dataset', None, "As of experiments.run; by default the run's own."
)
_TRAIN_SPLIT = flags.DEFINE_string('train_split', 'train', 'TFDS slice.')
_TEST_SPLIT = flags.DEFINE_string('test_split', 'test', 'TFDS slice.')
_OUTPUT = flags.DEFINE_string('output', None, 'The .npz file to write.')


def main() -> None:
  """Writes the file and says what is in it."""
  if not _RUN.value or not _OUTPUT.value:
    config_flags.fail('give --run and --output.')
  try:
    trained = trained_lib.load(_RUN.value)
    name = _DATASET.value or trained.config.dataset
    path = outputs.checked(_OUTPUT.value, '.npz', name, run=_RUN.value)
    found = _features(trained, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, found)
  except ValueError as error:
    config_flags.fail(error)
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


def _write(path, arrays):
  temporary = path.with_name(f'.{path.name}')
  try:
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)
  finally:
    temporary.unlink(missing_ok=True)


if __name__ == '__main__':
  config_flags.main(main)
