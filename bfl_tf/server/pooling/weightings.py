"""Weights of the clients in the pooled posterior (pooling paper, section 2.6).

Divergences compare marginals in float64. For deterministic models, the squared
Euclidean distance replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar

import numpy as np

from bfl_tf import statistics, weights
from bfl_tf.declare import component
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tfd

# With a smaller divergence, two posteriors are equal up to float32's precision.
_LEAST_DIVERGENCE = 1e-12

DISCREPANCIES = ('largest', 'nearest')


def divergence(q: weights.Weights, p: weights.Weights) -> float:
  """Returns KL[q || p] of marginals in nats, or |q - p|^2 if deterministic."""
  return _divergence(_double(q), _double(p))


def _double(model: weights.Weights) -> tfd.Normal | np.ndarray:
  if not model.loc.size:
    return model.point.astype(np.float64)
  return tfd.Normal(model.loc.astype(np.float64), np.sqrt(model.variance()))


def _divergence(q, p) -> float:
  if isinstance(q, np.ndarray):
    return float(np.sum((q - p) ** 2))
  return float(np.sum(tfd.kl_divergence(q, p)))


class Weighting(component.Component):
  """Base of client weightings.

  A weighting implements `weigh`, or `weigh_all` if the weight of a client
  depends on the other updates of the round; all updates then stay in memory.
  Weights are nonnegative; the pooling rule normalizes them.

  Attributes:
    is_constant: Whether a client has the same weight in all rounds.
    is_equal: Whether all clients have the same weight.
  """

  is_constant: ClassVar[bool] = False
  is_equal: ClassVar[bool] = False

  def weigh(
    self, update: statistics.ClientUpdate, reference: weights.Weights
  ) -> tuple[float, int]:
    """Returns a client's weight, and the number of fallbacks."""
    raise NotImplementedError(f'{type(self).__qualname__}.weigh')

  def weigh_all(
    self, updates: Sequence[statistics.ClientUpdate], reference: weights.Weights
  ) -> tuple[Sequence[float], int]:
    """Returns the weights of all updates, and the number of fallbacks."""
    pairs = [self.weigh(update, reference) for update in updates]
    return [weight for weight, _ in pairs], sum(count for _, count in pairs)

  @property
  def needs_all(self) -> bool:
    """Whether the weight of a client depends on the other updates."""
    return component.overrides(self, Weighting, 'weigh_all')


@dataclasses.dataclass(frozen=True)
class Equal(Weighting):
  """Eq. 18: equal weights."""

  is_constant = True
  is_equal = True

  def weigh(self, update, reference):
    return 1.0, 0


@dataclasses.dataclass(frozen=True)
class Size(Weighting):
  """Eq. 19: the number of training examples."""

  is_constant = True

  def weigh(self, update, reference):
    return float(update.num_examples), 0


@dataclasses.dataclass(frozen=True)
class Distance(Weighting):
  """Eq. 21: 1 / KL[q_g || q_k], with q_g the broadcast posterior."""

  def weigh(self, update, reference):
    distance = divergence(reference, update.model)
    return (
      1.0 / max(distance, _LEAST_DIVERGENCE),
      int(distance < _LEAST_DIVERGENCE),
    )


@dataclasses.dataclass(frozen=True)
class MaxDiscrepancy(Weighting):
  """Eq. 20: smaller weights for clients far from the others.

  The printed maximum over all j of 1 / KL[q_k || q_j] is infinite at j = k, and
  otherwise selects the nearest client. The paper's text means the farthest
  client. Here j = k is excluded. If a divergence is 0, all weights are equal.
  """

  discrepancy: str = setting(
    'largest',
    'Discrepancy of a client: the largest KL divergence to another '
    'client, or the KL divergence to the nearest one as Eq. 20 is '
    'printed.',
    choices=DISCREPANCIES,
  )

  def weigh_all(self, updates, reference):
    if len(updates) == 1:
      return [1.0], 0
    pick = max if self.discrepancy == 'largest' else min
    models = [_double(update.model) for update in updates]
    distances = [
      pick(_divergence(k, j) for j in models if j is not k) for k in models
    ]
    if min(distances) < _LEAST_DIVERGENCE:
      return [1.0] * len(updates), 1
    return [1.0 / distance for distance in distances], 0


# `auto` uses the size; rules without weights ignore it.
WEIGHTINGS: dict[str, Any] = {
  'auto': Size,
  'equal': Equal,
  'size': Size,
  'max_discrepancy': MaxDiscrepancy,
  'distance': Distance,
}
