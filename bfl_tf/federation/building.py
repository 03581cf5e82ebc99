"""The clients' data, the model and the workers that train it.

Each is made once from the fields of a config that name it, and shared by the
experiments of a process where they agree.
"""

import functools
from typing import Any

import numpy as np

from bfl_tf import datasets as datasets_lib
from bfl_tf import models, partitions, training
from bfl_tf.federation import binding


def partition(config, dataset):
  """Returns the clients' indices, and those that the server holds back."""
  labels = dataset.train.y
  held, rest = partitions.hold_out(
    labels, num_examples=config.num_server_examples, seed=config.seed
  )
  if config.num_clients > len(rest):
    raise ValueError(
      f'--num_clients={config.num_clients} exceeds the {len(rest)} training '
      'examples that clients share.'
    )
  split = binding.bound(config.chosen.of('partition'), config)
  parts = split(labels[rest])
  return [rest[part].astype(np.int32) for part in parts], held


def dataset(config, built):
  """Loads what clients train on."""
  arguments = {
    'train_split': config.train_split,
    'test_split': config.test_split,
    'validation_split': config.validation_split,
    'seed': config.seed if config.validation_split else 0,
  }
  key = ('dataset', config.dataset, *arguments.values())
  if key not in built:
    built[key] = datasets_lib.load(config.dataset, **arguments)
  return built[key]


def workers(config, dataset, parts, built, random):
  """Makes a worker a device, compiled for the clients' training."""
  if config.augment and len(dataset.input_shape) != 3:
    raise ValueError(
      f'--augment needs images; {config.dataset} has examples of shape '
      f'{dataset.input_shape}.'
    )
  settings = binding.configured(training.Settings, config).keywords | {
    'optimizer': binding.make('client_optimizer', config),
    'weight_decay': config.client_weight_decay,
    'random': random,
    'parts': parts,
  }
  data = training.Data(
    dataset.train.x, dataset.train.y, dataset.mean, dataset.std
  )
  strategies = training.strategies(config.num_workers, config.distribution)
  return compiled(
    config, dataset, data, training.Settings(**settings), strategies, built
  )


def compiled(config, dataset, data, settings, strategies, built):
  """Returns a worker a strategy; one that was built for the like is used."""
  build_model = model_builder(config, dataset)
  model = build_model.keywords | {'seed': 0, 'name': config.model}
  key = (
    'workers', id(dataset), data.x.shape, data.y.shape, config.num_workers,
    config.distribution, settings, tuple(sorted(model.items())),
  )  # fmt: skip
  if key not in built:
    built[key] = [
      training.Worker(strategy, build_model, data, settings)
      for strategy in strategies
    ]
  return built[key]


def model_builder(config, dataset):
  """Returns the function that builds the model with its initial weights."""
  own: dict[str, Any] = {}
  for role in ('variant', 'model'):
    own |= config.chosen.values(config.chosen.of(role))
  return functools.partial(
    models.build,
    config.model,
    variant=config.variant,
    input_shape=dataset.input_shape,
    num_classes=dataset.num_classes,
    kernel_initializer=config.kernel_initializer,
    seed=config.seed,
    **own,
  )
