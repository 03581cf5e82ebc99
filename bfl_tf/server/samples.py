"""The clients' samples as a group of models that predict together."""

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar

import numpy as np

from bfl_tf import statistics as statistics_lib
from bfl_tf import weights as weights_lib


@dataclasses.dataclass(frozen=True)
class Extras:
  """What a part sends, client by client: a Statistic that keeps it all.

  Attributes:
    part: the part's name.
  """

  part: str

  def accumulate(self, update, weight, reference) -> statistics_lib.Sums:
    """See `statistics.Statistic`."""
    entry = {update.client_id: update.extras[self.part]}
    return statistics_lib.single(1.0, {}, {'extras': entry})

  def finalize(self, sums, reference) -> tuple[list, dict[str, float]]:
    """Returns the vectors in the order of the clients' ids."""
    table = sums.tables['extras']
    return [table[client] for client in sorted(table)], {}


@dataclasses.dataclass(frozen=True)
class Samples:
  """Scores group S: all clients' samples, each as a model of its own."""

  name: ClassVar[str] = 'samples'
  statistics: ClassVar[tuple] = (Extras('thinning'),)
  predictors: ClassVar[tuple[str, ...]] = ('S',)

  def init(self, model) -> np.ndarray:
    """Carries nothing; the part that needs this stage is sent as much."""
    return np.zeros([0], np.float32)

  def __call__(self, state, reference, pooled, statistics, seed):
    size = pooled.mean.size
    sent = [v.reshape(-1, size) for v in statistics[self.statistics[0]]]
    return state, {}, {'S': _Models(np.concatenate(sent), pooled)}


@dataclasses.dataclass(frozen=True, eq=False)
class _Models(Sequence):
  """Models with the means of rows; all else is as it was pooled."""

  means: np.ndarray
  like: weights_lib.Weights

  def __len__(self) -> int:
    return len(self.means)

  def __getitem__(self, index: Any) -> Any:
    return self.like.replace_mean(self.means[index])
