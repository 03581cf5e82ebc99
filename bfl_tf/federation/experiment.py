"""Build the method and the data of a run from its config."""

import dataclasses
import functools
from typing import Any

import numpy as np

from bfl_tf import data, server, training
from bfl_tf.config.config import Config
from bfl_tf.federation import client, run_data
from bfl_tf.federation.method import Method
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State


@dataclasses.dataclass(frozen=True)
class Experiment:
  """A method, and data and devices to try it on.

  Attributes:
    method: Method: plan of the clients and the server's side.
    dataset: real examples, in memory once.
    partition: int32 index arrays into `dataset.train`, one a client.
    server_indices: int32, examples that clients do not see.
    workers: `training.Worker`s, one a device.
  """

  method: Method
  dataset: data.Dataset
  partition: list[np.ndarray]
  server_indices: np.ndarray
  workers: list[training.Worker]

  @property
  def config(self) -> Config:
    """Config of the run."""
    return self.method.config

  def broadcast(self, state: State) -> client.Broadcast:
    """Returns what the round after `state` begins with."""
    return client.Broadcast(
      state.round,
      state.model,
      self.method.shared(state.slots),
      sum(map(len, self.partition)),
    )

  @classmethod
  def build(
    cls,
    config: Config,
    built: dict[Any, Any] | None = None,
    dataset: data.Dataset | None = None,
    plan: Plan | None = None,
  ) -> 'Experiment':
    """Makes the pieces.

    Args:
      config: Config of the run.
      built: data sets and compiled workers of earlier experiments, to be used
        again where they fit and added to.
      dataset: Data set in place of --dataset.
      plan: Plan of the clients, in place of the config's.

    Raises:
      ValueError: the message names the flag and the fix.
    """
    built = {} if built is None else built
    plan = plan or Plan.of(config)
    dataset = dataset or run_data.load(config, built)
    partition, held = run_data.partition_dataset(config, dataset)
    plan.check_trainings([len(indices) for indices in partition])
    workers = plan.workers(dataset, built)
    deterministic = config.variant == 'deterministic'
    resources = server.Resources(
      workers=workers,
      num_classes=dataset.num_classes,
      num_mc_samples=1 if deterministic else config.num_mc_samples,
      server_indices=held,
      validation=dataset.validation,
      objective=plan.objective,
      recalibrates=config.batch_norm == 'recalibrate',
      load_server_data=functools.partial(
        run_data.of_server, config, dataset, held, built
      ),
    )
    method = Method.build(plan, resources)
    return cls(method, dataset, partition, held, workers)


def build(
  config: Config,
  built: dict[Any, Any] | None = None,
  dataset: data.Dataset | None = None,
) -> Experiment:
  """Sets up this process's devices, then makes an `Experiment`."""
  training.configure(
    config.num_workers, config.deterministic, config.mixed_precision
  )
  return Experiment.build(config, built, dataset)
