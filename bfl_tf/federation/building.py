"""The clients' data, the model and the workers that train it.

Each is made once from the fields of a config that name it, and shared by the
experiments of a process where they agree.
"""

import functools
import inspect

import numpy as np

from bfl_tf import datasets as datasets_lib
from bfl_tf import models, own, partitions, training
from bfl_tf.config import binding

# The variant's settings that the objective is made of.
_OF_PRIOR = ('prior_scale', 'update_prior', 'temperature')
# What decides how examples are read, and what each site holds out.
_OF_FILES = (
  'calibration_fraction', 'test_fraction', 'num_classes', 'label_column',
  'client_column', 'ignore_columns',
)  # fmt: skip


def partition(config, dataset):
  """Returns the clients' indices, and those that the server holds back."""
  labels = dataset.train.y
  num_held = config.num_server_examples or round(
    config.server_fraction * labels.size
  )
  held, rest = partitions.hold_out(
    labels, num_examples=num_held, seed=config.seed
  )
  if config.num_clients > len(rest):
    raise ValueError(
      f'--num_clients={config.num_clients} exceeds the {len(rest)} training '
      'examples that clients share.'
    )
  what = f'--partition={config.partition}'
  method = config.chosen.of('partition')
  of_run = {
    'num_classes': dataset.num_classes,
    'rows': dataset.row_numbers[rest],
  }
  if 'client_ids' in inspect.signature(method.thing).parameters:
    of_run['client_ids'] = _client_ids(config, dataset, rest)
  split = binding.bound(method, config, **of_run)
  parts = own.call(what, split, labels[rest])
  overlap = getattr(method.thing, 'overlap', False)
  try:
    parts = partitions.checked(parts, len(rest), config.num_clients, overlap)
  except ValueError as error:
    raise ValueError(f'{what} {error}') from error
  return [rest[part].astype(np.int32) for part in parts], held


def _client_ids(config, dataset, rest):
  """Whose the examples are that a partition deals; no site is left out."""
  if dataset.train.ids is None:
    raise ValueError(
      f'--partition={config.partition} asks for client_ids, which '
      f'--dataset={config.dataset} does not bring: of a .csv '
      '--client_column names them, of an .npz client_ids.'
    )
  ids = dataset.train.ids[rest]
  splits = (dataset.train, dataset.validation)
  known = [split.ids for split in splits if split.ids is not None]
  gone = np.setdiff1d(np.concatenate(known), ids)
  if gone.size:
    took = [
      f'--{flag}={getattr(config, flag)}'
      for flag in ('validation_split', 'num_server_examples', 'server_fraction')
      if getattr(config, flag)
    ]
    raise ValueError(
      f'--partition={config.partition}: site {str(gone[0])!r} has no example '
      f'left to train on: {" and ".join(took)} took all; take fewer, or leave '
      'its rows out.'
    )
  return ids


def client_names(dataset, partition):
  """Returns the sites' names, where each client is a site; else nothing."""
  if dataset.train.ids is None:
    return ()
  ids = np.asarray(dataset.train.ids)
  sites = [np.unique(ids[part]) for part in partition]
  names = tuple(str(site[0]) for site in sites if site.size == 1)
  return names if len(set(names)) == len(partition) else ()


def dataset(config, built):
  """Loads what clients train on."""
  arguments = {
    'train_split': config.train_split,
    'test_split': config.test_split,
    'validation_split': config.validation_split,
    'seed': config.seed if config.validation_split else 0,
    **{name: getattr(config, name) for name in _OF_FILES},
  }
  key = ('dataset', config.dataset, *arguments.values())
  if key not in built:
    built[key] = datasets_lib.load(config.dataset, **arguments)
  return built[key]


def check_classes(dataset):
  """Refuses examples of one class, which a single site may well have."""
  if dataset.num_classes < 2:
    raise ValueError(
      f'--dataset={dataset.name} has no class but '
      f'{str((*dataset.class_names, 0)[0])!r}: there is nothing to tell apart.'
    )


def workers(config, dataset, parts, built, random):
  """Makes a worker a device, compiled for the clients' training."""
  if config.augment and len(dataset.input_shape) != 3:
    raise ValueError(
      f'--augment needs images; {config.dataset} has examples of shape '
      f'{dataset.input_shape}.'
    )
  variant = config.chosen.of('variant').values
  settings = training.Recipe(
    optimizer=binding.make('client_optimizer', config),
    batch_size=config.batch_size,
    max_gradient_norm=config.max_gradient_norm,
    weight_decay=config.client_weight_decay,
    decay_biases=config.decay_biases,
    augment=config.augment,
    augment_padding=config.augment_padding,
    step_decay=config.step_decay,
    epoch_decay=config.epoch_decay,
    epoch_decay_every=config.epoch_decay_every,
    random=random,
    parts=parts,
    **{name: variant[name] for name in _OF_PRIOR if name in variant},
  )
  data = training.Data(
    dataset.train.x, dataset.train.y, dataset.mean, dataset.std
  )
  strategies = training.strategies(config.num_workers, config.distribution)
  return compiled(config, dataset, data, settings, strategies, built)


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
  of_run = {
    'variant': config.variant,
    'input_shape': dataset.input_shape,
    'num_classes': dataset.num_classes,
    'kernel_initializer': config.kernel_initializer,
  }
  of_variant = config.chosen.of('variant').values
  network = config.chosen.of('model')
  settings = {**of_variant, **network.values}
  if ':' in config.model:
    settings |= binding.bound(network, config, **of_run).keywords
  return functools.partial(
    models.build, config.model, **{**settings, **of_run, 'seed': config.seed}
  )


def check_model(config, dataset, layout):
  """Refuses what a network of anybody's own gets wrong without a sound.

  Raises:
    ValueError: it ends in a softmax, or has no random weights where some are
      asked for.
  """
  if ':' not in config.model:
    return
  models.check_logits(config.model, model_builder(config, dataset)())
  if config.variant == 'flipout' and not layout.size('loc'):
    raise ValueError(
      f'--variant=flipout, but --model={config.model} has no variational '
      'weight: take the layers of bfl_tf.models.layers, or '
      '--variant=deterministic.'
    )
