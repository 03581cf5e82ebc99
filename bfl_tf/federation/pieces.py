"""The pieces that stages, clients and the server are given: data and workers.

Each is made once from the fields of a config that name it, and shared by the
experiments of a process where they agree.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import inspect
import types
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import (
  clients,
  datasets,
  models,
  partitions,
  registry,
  seeds,
  server,
  training,
)
from bfl_tf.federation import config as config_lib


def configured(
  thing: Any,
  config: config_lib.Config,
  resources: Mapping[str, Callable[[], Any]] = types.MappingProxyType({}),
) -> functools.partial:
  """Binds those of a thing's arguments that config or resources name.

  Args:
    thing: a class or a function.
    config: its fields are bound by their names.
    resources: functions that make what only some things need, by name.
  """
  names = inspect.signature(thing).parameters
  fields = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
  bound = {name: fields[name] for name in names if name in fields}
  made = {name: make() for name, make in resources.items() if name in names}
  return functools.partial(thing, **bound | made)


def resources(
  config: config_lib.Config,
  dataset: datasets.Dataset,
  held: np.ndarray,
  clients_workers: list[training.Worker],
  built: dict[Any, Any],
) -> dict[str, Callable[[], Any]]:
  """What stages ask for by name, made only if one does.

  Args:
    config: of the experiment.
    dataset: what clients train on.
    held: indices of the examples that clients do not see.
    clients_workers: those that train clients; they also predict.
    built: as in `Experiment.build`.
  """
  # The server has no broadcast to take as a prior, no parts, a constant rate.
  alone = dataclasses.replace(
    config, update_prior=False, step_decay=1.0, epoch_decay=1.0
  )
  deterministic = config.variant == 'deterministic'
  unlabeled = functools.cache(lambda: server_data(config, dataset, held, built))
  made: dict[str, Callable[[], Any]] = {
    'server_workers': lambda: workers(alone, dataset, (), built),
    'server_indices': lambda: held,
    'validation': lambda: dataset.validation,
    'num_mc_samples': lambda: 1 if deterministic else config.num_mc_samples,
    'num_classes': lambda: dataset.num_classes,
    'workers': lambda: clients_workers,
    'layout': lambda: clients_workers[0].layout,
    'server_images': lambda: unlabeled().images,
    'server_labels': lambda: unlabeled().labels,
    'make_student': lambda: (
      lambda distillation: _student(
        dataclasses.replace(config, distillation=distillation),
        dataset,
        unlabeled().images,
        built,
      )
    ),
  }
  made['recalibrated'] = lambda: _recalibrated(config, made)
  made['teacher_groups'] = lambda: configured(server.Ensemble, config, made)()
  made['make_distil'] = lambda: configured(server.Distil, config, made)
  return made


def _recalibrated(config, made):
  if config.batch_norm == 'average':
    return None
  return configured(server.Recalibrate, config, made)().measured


class ServerData(NamedTuple):
  """What the server has: raw examples, and their labels if it knows them."""

  images: np.ndarray
  labels: np.ndarray | None


def server_data(config, dataset, held, built) -> ServerData:
  """Loads the server's examples; `built` as in `Experiment.build`."""
  if config.server_dataset:
    key = (
      'server', id(dataset), config.server_dataset, config.server_split,
      config.resize,
    )  # fmt: skip
    if key not in built:
      built[key] = datasets.load_unlabeled(
        config.server_dataset,
        split=config.server_split,
        like=dataset,
        resize=config.resize,
      )
    data = ServerData(built[key], None)
  else:
    data = ServerData(dataset.train.x[held], dataset.train.y[held])
  wanted = config.num_unlabeled_examples
  if wanted > len(data.images):
    raise ValueError(
      f'--num_unlabeled_examples={wanted} exceeds the {len(data.images)} '
      'examples of the server.'
    )
  if not wanted:
    return data
  rng = seeds.generator(config.seed, 'unlabeled')
  chosen = np.sort(rng.permutation(len(data.images))[:wanted])
  labels = None if data.labels is None else data.labels[chosen]
  return ServerData(data.images[chosen], labels)


def _student(config, dataset, images, built):
  """A worker compiled for distillation on images of such a shape.

  It may come from another experiment: images and targets are handed to it.
  """
  settings = training.Settings(
    optimizer=training.SGD(config.distillation_momentum),
    batch_size=config.distillation_batch_size,
    weight_decay=config.distillation_weight_decay,
    decay_biases=config.decay_biases,
    augment=config.augment and config.distillation_augment,
    augment_padding=config.augment_padding,
    trains_scale=False,
  )
  if config.distillation == 'swa':
    lowest = config.swa_min_learning_rate / config.distillation_learning_rate
    settings = dataclasses.replace(
      settings,
      cycle_length=config.swa_cycle,
      cycle_floor=lowest,
      parts=(clients.Swa(config.swa_start, config.swa_cycle),),
    )
  targets = np.zeros((len(images), dataset.num_classes), np.float32)
  data = training.Data(images, targets, dataset.mean, dataset.std)
  # One device: steps follow one another, and tasks run side by side.
  strategies = training.strategies(config.num_workers, config.distribution)[:1]
  (student,) = _compiled(config, dataset, data, settings, strategies, built)
  return student


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
  split = registry.resolve('partition', config.partition, partitions.PARTITIONS)
  parts = configured(split, config)(labels[rest])
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
    built[key] = datasets.load(config.dataset, **arguments)
  return built[key]


def workers(config, dataset, parts, built):
  """Makes a worker a device, compiled for the clients' training."""
  if config.augment and len(dataset.input_shape) != 3:
    raise ValueError(
      f'--augment needs images; {config.dataset} has examples of shape '
      f'{dataset.input_shape}.'
    )
  settings = configured(training.Settings, config).keywords | {
    'optimizer': _optimizer(config),
    'weight_decay': config.client_weight_decay,
    'parts': parts,
  }
  data = training.Data(
    dataset.train.x, dataset.train.y, dataset.mean, dataset.std
  )
  strategies = training.strategies(config.num_workers, config.distribution)
  return _compiled(
    config, dataset, data, training.Settings(**settings), strategies, built
  )


def _compiled(config, dataset, data, settings, strategies, built):
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


def _optimizer(config):
  registry.check_choice(
    'client_optimizer', config.client_optimizer, ('sgd', 'adam')
  )
  if config.client_optimizer == 'sgd':
    return training.SGD(config.client_momentum)
  if config.client_momentum:
    raise ValueError('--client_momentum belongs to --client_optimizer=sgd.')
  return training.Adam()


def model_builder(config, dataset):
  """Returns the function that builds the model with its initial weights."""
  return functools.partial(
    configured(models.build, config),
    config.model,
    input_shape=dataset.input_shape,
    num_classes=dataset.num_classes,
  )
