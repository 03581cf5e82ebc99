"""Values of a run that a method may use."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class RunContext:
  """Values of a run, passed to the methods whose constructor names them.

  A constructor argument with the name of an attribute is therefore not a
  setting. An attribute is None where the run cannot provide it yet.

  Attributes:
    seed: Random seed of the run.
    num_clients: Number of clients of the run.
    clients_per_round: Number of clients per round; 0 for all.
    num_rounds: Number of rounds.
    num_classes: Number of classes, for partitions, networks and stages; for a
      network, the number of its outputs.
    label_moments: Mean and standard deviation of numeric labels, for
      likelihoods.
    rows: Place of each example in the data set, for partitions.
    client_ids: Site of each example, for partitions.
    resources: A `server.Resources`, for stages.
    prior_precision: 1 / prior_scale^2, or 0 without a prior, for client parts.
    client_optimizer: Optimizer of the clients, for client parts.
    weighting: Client weighting, for client parts.
    input_shape: Shape of one example, for networks.
    variant: Name of the variant, for networks.
    kernel_initializer: Name of the initializer, for networks.
  """

  seed: int
  num_clients: int
  clients_per_round: int
  num_rounds: int
  num_classes: int | None = None
  label_moments: tuple[float, float] | None = None
  rows: np.ndarray | None = None
  client_ids: np.ndarray | None = None
  resources: Any = None
  prior_precision: float | None = None
  client_optimizer: Any = None
  weighting: Any = None
  input_shape: tuple[int, ...] | None = None
  variant: str | None = None
  kernel_initializer: str | None = None


NAMES = frozenset(field.name for field in dataclasses.fields(RunContext))
