"""Features of a network that the server pre-trained, as data sets.

They correspond to `configs/fl_swag/pretrain.flags` and `experiments.features`.
A LeNet-5 is trained once per process, which takes seconds; its seed is always
0. A ResNet-18 takes an hour, so its features are read from a file.
"""

import functools
import pathlib

from bfl_tf import analysis, data, federation, runs
from bfl_tf.analysis import features
from bfl_tf.config.config import Config
from experiments.papers.fl_swag import grids

_OF_RESNET18 = pathlib.Path('runs/features/cifar10.npz')


def mnist() -> data.Dataset:
  """Returns 84 features of MNIST's last 50 000 training examples."""
  return _features('mnist')


def fashion_mnist() -> data.Dataset:
  """Returns 84 features of Fashion-MNIST's last 50 000 training examples."""
  return _features('fashion_mnist')


def cifar10() -> data.Dataset:
  """Returns 512 features of CIFAR-10's last 40 000 training examples."""
  if not _OF_RESNET18.exists():
    raise ValueError(
      f'{_OF_RESNET18} is missing: train the ResNet-18 with --flagfile='
      'configs/fl_swag.flags --flagfile=configs/fl_swag/pretrain_cifar10.flags '
      '--output_dir=DIR, then experiments.features --run=DIR '
      f'--output={_OF_RESNET18}.'
    )
  return data.load(str(_OF_RESNET18))


@functools.cache
def _features(name):
  config = Config.of(
    {**grids.PAPER.preset, **grids.PAPER.flags('pretrain'), 'dataset': name}
  )
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  for _ in range(config.num_rounds):
    state = federation.federated_round(experiment, state).state
  task = runs.Task.of(experiment.dataset)
  network = analysis.Trained(config, task, state.model)
  arrays = features.of_dataset(network, data.load(name), experiment.dataset)
  return data.from_arrays(f'features of {name}', **arrays)
