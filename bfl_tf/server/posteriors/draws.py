"""Groups of models that are created or sampled on demand."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from bfl_tf import seeds, weights
from bfl_tf.startup import tf, tfd, tfp


@dataclasses.dataclass(frozen=True, eq=False)
class Models(Sequence):
  """A group of models; repeated access gives bit-for-bit identical models.

  Attributes:
    shares: `[size]`, weights of a second mixture of the group; None for equal
      weights.
    beta: Weight of the product of the predictions, as in `training.Mixtures`.
  """

  size: int
  make: Callable[[int], weights.Weights]
  shares: np.ndarray | None = None
  beta: float = 0.0

  def __len__(self) -> int:
    return self.size

  def __getitem__(self, index: Any) -> Any:
    return self.make(range(self.size)[index])


def shares_of(group: Sequence[weights.Weights]) -> np.ndarray | None:
  """Returns the weights of a group's members, or None if all are equal."""
  return group.shares if isinstance(group, Models) else None


def betas_of(
  groups: Mapping[str, Sequence[weights.Weights]],
) -> dict[str, float]:
  """Returns `beta` of the groups that are not only a mixture, by name."""
  return {
    name: group.beta
    for name, group in groups.items()
    if isinstance(group, Models) and group.beta
  }


@dataclasses.dataclass(frozen=True, eq=False)
class Draws(Sequence):
  """Samples of models; repeated access gives bit-for-bit identical models.

  Attributes:
    distribution: Distribution over `Weights.values`.
    like: Model that provides scales and the reference for variances.
    is_variance: `[num_buffers]` bool, mask of moving variances.
    min_variance: Lower bound on sampled moving variances, as a fraction of
      those of `like`.
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
    """Returns the fraction of sampled moving variances at the lower bound."""
    return float(np.mean([self._floored(i)[1] for i in range(self.size)]))

  def _floored(self, index):
    drawn = _sample(self.distribution, seeds.child(self.seed, index))
    model = self.like.replace_values(drawn.numpy())
    least = np.where(
      self.is_variance, self.min_variance * self.like.buffers, -np.inf
    )
    is_low = model.buffers < least
    buffers = np.where(is_low, least, model.buffers).astype(np.float32)
    total = max(1, int(self.is_variance.sum()))
    return model._replace(buffers=buffers), int(is_low.sum()) / total


def _sample(distribution, seed):
  """Returns a sample; a compiled one of TFP takes a tenth of the time."""
  if not isinstance(distribution, tfd.Distribution):
    return distribution.sample(seed=seed)
  return _compiled()(tfp.experimental.as_composite(distribution), seed)


@functools.cache
def _compiled():
  return tf.function(lambda distribution, seed: distribution.sample(seed=seed))
