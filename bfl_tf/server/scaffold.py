"""SCAFFOLD's server side: c <- c + sum_i (c_i+ - c_i) / num_clients.

References:
  S. P. Karimireddy et al. SCAFFOLD: Stochastic controlled averaging for
  federated learning. ICML 2020, algorithm 1, line 17.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from bfl_tf import statistics as statistics_lib


@dataclasses.dataclass(frozen=True)
class ExtraSum:
  """The plain sum over clients of what a part sends: a Statistic.

  Attributes:
    part: the part's name.
  """

  part: str

  def accumulate(self, update, weight, reference) -> statistics_lib.Sums:
    """See `statistics.Statistic`."""
    return statistics_lib.single(1.0, {'extra': update.extras[self.part]})

  def finalize(self, sums, reference) -> tuple[np.ndarray, dict[str, float]]:
    """Returns the sum, float64."""
    return sums.value('extra'), {}


@dataclasses.dataclass(frozen=True)
class Scaffold:
  """Keeps the server's control variate; its slot is broadcast to the part.

  Attributes:
    num_clients: of the run, also those that are not sampled.
  """

  num_clients: int

  name: ClassVar[str] = 'scaffold'
  statistics: ClassVar[tuple] = (ExtraSum('scaffold'),)

  def init(self, model) -> np.ndarray:
    """Returns c = 0, `[num_trainable]` float32, as it is broadcast."""
    return np.zeros(model.mean.size, np.float32)

  def __call__(self, state, reference, pooled, statistics, seed):
    change = statistics[self.statistics[0]] / self.num_clients
    control = (state.slots[self.name] + change).astype(np.float32)
    slots = {**state.slots, self.name: control}
    return state._replace(slots=slots), {
      'control_norm': float(np.linalg.norm(control))
    }
