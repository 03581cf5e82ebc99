"""Features of a LeNet-5 that the server pre-trained, as data sets.

What `configs/fl_swag/pretrain.flags` and `experiments.features` make by hand,
in one step: the network is trained anew in each process, which takes seconds;
its seed is 0, whatever the run's.
"""

import functools

from bfl_tf import datasets, federation
from bfl_tf.federation import chosen, features
from experiments.artifacts.fl_swag import grids


def mnist() -> datasets.Dataset:
  """Returns 84 features of MNIST's last 50 000 training examples."""
  return _features('mnist')


def fashion_mnist() -> datasets.Dataset:
  """Returns those of Fashion-MNIST."""
  return _features('fashion_mnist')


@functools.cache
def _features(name):
  config = federation.Config.of(
    chosen.merged(
      grids.PAPER.preset, grids.PAPER.flags('pretrain'), {'dataset': name}
    )
  )
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  for _ in range(config.num_rounds):
    state = federation.federated_round(experiment, state).state
  task = federation.Task.of(experiment.dataset)
  network = federation.Trained(config, task, state.model)
  arrays = features.of_dataset(network, datasets.load(name), experiment.dataset)
  return datasets.from_arrays(f'features of {name}', **arrays)
