"""Makes what a run has for its stages: workers, the server's data, students."""

import dataclasses
import functools
from typing import Any

import numpy as np

from bfl_tf import datasets, seeds, server, training
from bfl_tf.config import config as config_lib
from bfl_tf.federation import building


def resources(
  config: config_lib.Config,
  dataset: datasets.Dataset,
  held: np.ndarray,
  workers: list[training.Worker],
  built: dict[Any, Any],
) -> server.Resources:
  """Returns what stages may ask for."""
  stochastic = config.variant != 'deterministic'
  layout = workers[0].layout
  load = functools.cache(lambda: server_data(config, dataset, held, built))
  return server.Resources(
    layout=layout,
    build_model=building.model_builder(config, dataset),
    num_classes=dataset.num_classes,
    num_mc_samples=config.num_mc_samples if stochastic else 1,
    workers=workers,
    server_indices=held,
    validation=dataset.validation,
    recalibrates=config.batch_norm == 'recalibrate',
    student=lambda distil: _student(
      distil, config, dataset, load().images, built, layout.random
    ),
    make_server_workers=lambda: _server_workers(
      config, dataset, built, layout.random
    ),
    load_server_data=load,
  )


def _server_workers(config, dataset, built, random):
  # The server has no broadcast to take as a prior, no parts, a constant rate.
  alone = config.replace(
    client_parts=(),
    step_decay=1.0,
    epoch_decay=1.0,
    **{'flipout.update_prior': False},
  )
  return building.workers(alone, dataset, (), built, random)


def server_data(config, dataset, held, built) -> server.ServerData:
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
    data = server.ServerData(built[key], None)
  else:
    data = server.ServerData(dataset.train.x[held], dataset.train.y[held])
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
  return server.ServerData(data.images[chosen], labels)


def _student(distil, config, dataset, images, built, random):
  """A worker compiled for distillation on images of such a shape.

  It may come from another experiment: images and targets are handed to it.
  """
  settings = training.Recipe(
    optimizer=training.SGD(distil.momentum),
    batch_size=distil.batch_size,
    weight_decay=distil.weight_decay,
    decay_biases=config.decay_biases,
    augment=config.augment and distil.augment,
    augment_padding=config.augment_padding,
    trains_scale=False,
    random=random,
  )
  if distil.optimizer == 'swa':
    settings = dataclasses.replace(
      settings,
      cycle_length=distil.steps('swa_cycle'),
      cycle_floor=distil.swa_min_learning_rate / distil.learning_rate,
      parts=(distil.averaging,),
    )
  targets = np.zeros((len(images), dataset.num_classes), np.float32)
  data = training.Data(images, targets, dataset.mean, dataset.std)
  # One device: steps follow one another, and tasks run side by side.
  strategies = training.strategies(config.num_workers, config.distribution)[:1]
  (student,) = building.compiled(
    config, dataset, data, settings, strategies, built
  )
  return student
