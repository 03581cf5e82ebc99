"""What a run has for its stages: workers, the server's examples, students."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import datasets, seeds, server, training
from bfl_tf import weights as weights_lib
from bfl_tf.config import config as config_lib
from bfl_tf.federation import building


@dataclasses.dataclass(frozen=True, eq=False)
class Resources:
  """A `server.Resources`, whose page says what each of these is.

  Attributes:
    config: of the experiment.
    dataset: what clients train on.
    server_indices: of the examples that clients do not see.
    workers: those that train clients.
    built: as in `Experiment.build`.
  """

  config: config_lib.Config
  dataset: datasets.Dataset
  server_indices: np.ndarray
  workers: list[training.Worker]
  built: dict[Any, Any]

  @property
  def layout(self) -> weights_lib.Layout:
    """See `server.Resources`."""
    return self.workers[0].layout

  @property
  def build_model(self):
    """See `server.Resources`."""
    return building.model_builder(self.config, self.dataset)

  @property
  def num_classes(self) -> int:
    """See `server.Resources`."""
    return self.dataset.num_classes

  @property
  def num_mc_samples(self) -> int:
    """See `server.Resources`."""
    stochastic = self.config.variant != 'deterministic'
    return self.config.num_mc_samples if stochastic else 1

  @property
  def validation(self) -> datasets.Split:
    """See `server.Resources`."""
    return self.dataset.validation

  @functools.cached_property
  def server_workers(self) -> list[training.Worker]:
    """See `server.Resources`."""
    # The server has no broadcast to take as a prior, no parts, a constant rate.
    alone = self.config.replace(
      client_parts=(),
      step_decay=1.0,
      epoch_decay=1.0,
      **{'flipout.update_prior': False},
    )
    return building.workers(
      alone, self.dataset, (), self.built, self.layout.random
    )

  @property
  def server_images(self) -> np.ndarray:
    """See `server.Resources`."""
    return self._server_data.images

  @property
  def server_labels(self) -> np.ndarray | None:
    """See `server.Resources`."""
    return self._server_data.labels

  @functools.cached_property
  def _server_data(self):
    return server_data(
      self.config, self.dataset, self.server_indices, self.built
    )

  @functools.cached_property
  def recalibration(self) -> server.Recalibrate | None:
    """The stage that measures batch normalization's statistics, if any.

    Decides for pooled models, teachers and students: the flag's only reader.
    """
    if self.config.batch_norm == 'average':
      return None
    return server.Recalibrate(self)

  @property
  def recalibrated(self):
    """See `server.Resources`."""
    return self.recalibration and self.recalibration.measured

  def student(self, distil: server.Distil) -> training.Worker:
    """See `server.Resources`; a student of another experiment may be used.

    Images and targets are handed to it.
    """
    config = self.config
    settings = training.Settings(
      optimizer=training.SGD(distil.momentum),
      batch_size=distil.batch_size,
      weight_decay=distil.weight_decay,
      decay_biases=config.decay_biases,
      augment=config.augment and distil.augment,
      augment_padding=config.augment_padding,
      trains_scale=False,
      random=self.layout.random,
    )
    if distil.optimizer == 'swa':
      settings = dataclasses.replace(
        settings,
        cycle_length=distil.steps('swa_cycle'),
        cycle_floor=distil.swa_min_learning_rate / distil.learning_rate,
        parts=(distil.averaging,),
      )
    targets = np.zeros((len(self.server_images), self.num_classes), np.float32)
    data = training.Data(
      self.server_images, targets, self.dataset.mean, self.dataset.std
    )
    # One device: steps follow one another, and tasks run side by side.
    strategies = training.strategies(config.num_workers, config.distribution)
    (student,) = building.compiled(
      config, self.dataset, data, settings, strategies[:1], self.built
    )
    return student


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
