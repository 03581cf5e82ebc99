"""The updates themselves, as Statistics whose sums are the table of them."""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from bfl_tf import statistics
from bfl_tf import weights as weights_lib


class Members(NamedTuple):
  """The clients' models of a round, in the order of their ids.

  Attributes:
    models: `num_clients` of them.
    shares: `[num_clients]`, their weights, summing to 1.
  """

  models: Sequence[weights_lib.Weights]
  shares: np.ndarray


@dataclasses.dataclass(frozen=True)
class Updates:
  """For what needs whole models: memory grows with the round's clients."""

  def accumulate(self, update, weight, reference) -> statistics.Sums:
    """See `statistics.Statistic`."""
    entry = {update.client_id: (weight, update.model)}
    return statistics.single(weight, {}, {'members': entry})

  def finalize(self, sums, reference) -> tuple[Members, dict[str, float]]:
    """Returns the members."""
    table = sums.tables['members']
    weights, models = zip(*(table[client] for client in sorted(table)))
    return Members(models, np.array(weights) / sum(weights)), {}


@dataclasses.dataclass(frozen=True)
class Messages:
  """All that each client sent, by its number: memory grows with them."""

  def accumulate(self, update, weight, reference) -> statistics.Sums:
    """See `statistics.Statistic`."""
    entry = {update.client_id: update}
    return statistics.single(weight, {}, {'messages': entry})

  def finalize(
    self, sums, reference
  ) -> tuple[dict[int, statistics.ClientUpdate], dict[str, float]]:
    """Returns the updates."""
    return sums.tables['messages'], {}
