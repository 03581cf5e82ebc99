"""Models that are made, or drawn, only when they are asked for."""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import seeds, weights


@dataclasses.dataclass(frozen=True, eq=False)
class Models(Sequence):
  """A group of models; the same bits every time.

  Attributes:
    size: Number of models.
    make: returns that of an index.
    shares: `[size]`, what each also counts by; None where all count the same.
  """

  size: int
  make: Callable[[int], weights.Weights]
  shares: np.ndarray | None = None

  def __len__(self) -> int:
    return self.size

  def __getitem__(self, index: Any) -> Any:
    return self.make(range(self.size)[index])


def shares_of(group: Sequence[weights.Weights]) -> np.ndarray | None:
  """Returns the weights of a group's members, or None if all are equal."""
  return group.shares if isinstance(group, Models) else None


@dataclasses.dataclass(frozen=True, eq=False)
class Draws(Sequence):
  """`size` draws of `Weights.values`; the same bits every time.

  Attributes:
    distribution: Distribution over `Weights.values`.
    like: the model whose scale they keep.
    is_variance: `[num_buffers]` bool, what a Gaussian must not make negative.
    seed: `[2]` int32.
    size: Number of draws.
    min_variance: floor of a drawn moving variance, as a fraction of `like`'s.
  """

  distribution: Any
  like: weights.Weights
  is_variance: np.ndarray
  seed: np.ndarray
  size: int
  min_variance: float

  def __len__(self) -> int:
    return self.size

  def __getitem__(self, index: Any) -> Any:
    return self._floored(range(self.size)[index])[0]

  def floored_fraction(self) -> float:
    """Moving variances that the floor held, of all that are drawn."""
    held = [self._floored(index)[1] for index in range(self.size)]
    return float(np.mean(held))

  def _floored(self, index):
    drawn = self.distribution.sample(seed=seeds.child(self.seed, index))
    model = self.like.replace_values(drawn.numpy())
    least = np.where(
      self.is_variance, self.min_variance * self.like.buffers, -np.inf
    )
    held = model.buffers < least
    buffers = np.where(held, least, model.buffers).astype(np.float32)
    total = max(1, int(self.is_variance.sum()))
    return model._replace(buffers=buffers), int(held.sum()) / total
