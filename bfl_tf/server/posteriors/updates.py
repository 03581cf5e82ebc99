"""A Statistic that collects all updates of a round."""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from bfl_tf import statistics
from bfl_tf.weights import Weights


class Members(NamedTuple):
  """The clients of a round, in the order of their IDs.

  Attributes:
    shares: `[num_clients]`, weights of the clients, with sum 1.
  """

  updates: Sequence[statistics.ClientUpdate]
  shares: np.ndarray

  @property
  def models(self) -> list[Weights]:
    """Models of the clients."""
    return [update.model for update in self.updates]


@dataclasses.dataclass(frozen=True)
class Updates:
  """All updates of a round, for stages that need each of them."""

  def accumulate(self, update, weight, reference) -> statistics.Sums:
    entry = {update.client_id: (weight, update)}
    return statistics.single(weight, {}, {'updates': entry})

  def finalize(self, sums, reference) -> tuple[Members, dict[str, float]]:
    table = sums.tables['updates']
    weights, updates = zip(*(table[client] for client in sorted(table)))
    return Members(updates, np.array(weights) / sum(weights)), {}
