"""What stages are given by name: workers, the server's examples, their labels.

A stage that trains or predicts names what it needs in its constructor; it is
made only if one does, and shared by the experiments of a process.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import datasets, seeds, server, training
from bfl_tf.config import binding
from bfl_tf.config import config as config_lib
from bfl_tf.federation import building


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
  alone = config.replace(
    client_parts=(),
    step_decay=1.0,
    epoch_decay=1.0,
    **{'flipout.update_prior': False},
  )
  deterministic = config.variant == 'deterministic'
  random = clients_workers[0].layout.random
  unlabeled = functools.cache(lambda: server_data(config, dataset, held, built))
  made: dict[str, Callable[[], Any]] = {
    'server_workers': lambda: building.workers(
      alone, dataset, (), built, random
    ),
    'server_indices': lambda: held,
    'validation': lambda: dataset.validation,
    'num_mc_samples': lambda: 1 if deterministic else config.num_mc_samples,
    'num_classes': lambda: dataset.num_classes,
    'workers': lambda: clients_workers,
    'layout': lambda: clients_workers[0].layout,
    'build_model': lambda: building.model_builder(config, dataset),
    'server_images': lambda: unlabeled().images,
    'server_labels': lambda: unlabeled().labels,
    'make_student': lambda: functools.partial(
      _student, config, dataset, unlabeled().images, built, random
    ),
  }
  configured = functools.partial(
    binding.configured, config=config, resources=made
  )
  made['recalibration'] = lambda: recalibration(config, configured)
  made['recalibrated'] = lambda: getattr(
    made['recalibration'](), 'measured', None
  )

  def used(thing):
    return binding.bound(config.chosen.using(thing), config, made)

  made['teacher_groups'] = lambda: used(server.Ensemble)()
  made['make_distil'] = lambda: used(server.Distil)
  return made


def recalibration(config, configured):
  """Decides for pooled models, teachers and students: the flag's only reader.

  Returns:
    The stage that measures batch normalization's statistics anew, or None to
    leave them as they are averaged, sampled or trained.
  """
  if config.batch_norm == 'average':
    return None
  return configured(server.Recalibrate)()


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


def _student(config, dataset, images, built, random, distil):
  """A worker compiled for distillation on images of such a shape.

  It may come from another experiment: images and targets are handed to it.
  """
  settings = training.Settings(
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
