"""Features of a network that the server pre-trained, as data sets.

What `configs/fl_swag/pretrain.flags` and `experiments.features` make by hand,
in one step: a LeNet-5 is trained anew in each process, which takes seconds; its
seed is 0, whatever the run's. A ResNet-18 takes an hour: its features are read
from a file.
"""

import functools
import pathlib

from bfl_tf import config as config_lib
from bfl_tf import datasets, federation
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.trained import features
from experiments.artifacts.fl_swag import grids

_OF_RESNET18 = pathlib.Path('runs/features/cifar10.npz')


def mnist() -> datasets.Dataset:
  """Returns 84 features of MNIST's last 50 000 training examples."""
  return _features('mnist')


def fashion_mnist() -> datasets.Dataset:
  """Returns those of Fashion-MNIST."""
  return _features('fashion_mnist')


def cifar10() -> datasets.Dataset:
  """Returns 512 features of CIFAR-10's last 40 000 training examples.

  Raises:
    ValueError: the file is missing; says how it is made.
  """
  if not _OF_RESNET18.exists():
    raise ValueError(
      f'{_OF_RESNET18} is missing: train the ResNet-18 with --flagfile='
      'configs/fl_swag.flags --flagfile=configs/fl_swag/pretrain_cifar10.flags '
      '--output_dir=DIR, then experiments.features --run=DIR '
      f'--output={_OF_RESNET18}.'
    )
  return datasets.load(str(_OF_RESNET18))


@functools.cache
def _features(name):
  config = config_lib.Config.of(
    {**grids.PAPER.preset, **grids.PAPER.flags('pretrain'), 'dataset': name}
  )
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  for _ in range(config.num_rounds):
    state = federation.federated_round(experiment, state).state
  task = runs_lib.Task.of(experiment.dataset)
  network = trained_lib.Trained(config, task, state.model)
  arrays = features.of_dataset(network, datasets.load(name), experiment.dataset)
  return datasets.from_arrays(f'features of {name}', **arrays)
