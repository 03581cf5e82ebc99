"""From a config to the method and the data that a run is made of."""

import dataclasses
from typing import Any

import numpy as np

from bfl_tf import datasets, training
from bfl_tf.config import config as config_lib
from bfl_tf.federation import building
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import method as method_lib
from bfl_tf.federation import resources as resources_lib
from bfl_tf.federation import state as state_lib


@dataclasses.dataclass(frozen=True)
class Experiment:
  """A method, and data and devices to try it on.

  Attributes:
    method: what the server does, and what clients are told.
    dataset: real examples, in memory once.
    partition: int32 index arrays into `dataset.train`, one a client.
    server_indices: int32, examples that clients do not see.
    workers: `training.Worker`s, one a device.
  """

  method: method_lib.Method
  dataset: datasets.Dataset
  partition: list[np.ndarray]
  server_indices: np.ndarray
  workers: list[training.Worker]

  @property
  def config(self) -> config_lib.Config:
    """What it was made from."""
    return self.method.config

  def broadcast(self, state: state_lib.State) -> client_lib.Broadcast:
    """Returns what the round after `state` begins with."""
    return client_lib.Broadcast(
      state.round,
      state.model,
      self.method.shared(state.slots),
      sum(map(len, self.partition)),
    )

  @classmethod
  def build(
    cls,
    config: config_lib.Config,
    built: dict[Any, Any] | None = None,
    dataset: datasets.Dataset | None = None,
  ) -> 'Experiment':
    """Makes the pieces.

    Args:
      config: what to make.
      built: data sets and compiled workers of earlier experiments, to be used
        again where they fit and added to.
      dataset: in place of what --dataset names.

    Raises:
      ValueError: the message names the flag and the fix.
    """
    built = {} if built is None else built
    # First what takes no time and may be refused.
    plan = client_lib.Plan.of(config)
    plan.check()
    rule, weighting = method_lib.rule_and_weighting(plan)
    dataset = dataset or building.dataset(config, built)
    building.check_classes(dataset)
    partition, held = building.partition(config, dataset)
    plan.check_trainings([len(indices) for indices in partition])
    workers = building.workers(config, dataset, plan.parts, built, plan.random)
    layout = workers[0].layout
    building.check_model(config, dataset, layout)
    method_lib.check_rule(rule, plan, layout)
    resources = resources_lib.resources(config, dataset, held, workers, built)
    start, stages = method_lib.start_and_stages(config, plan.parts, resources)
    method = method_lib.Method(
      **vars(plan),
      rule=rule,
      weighting=weighting,
      stages=stages,
      start=start,
      layout=layout,
      build_model=building.model_builder(config, dataset),
    )
    return cls(method, dataset, partition, held, workers)
