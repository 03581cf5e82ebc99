"""Distributions of group S of an ensemble.

`statistic(layout)` is the required Statistic over the round's updates, or None.
`distribution(pooled, result, layout)` returns the distribution over
`Weights.values` and the model that provides other vectors; `result` is the
result of the statistic.
"""

import dataclasses
from typing import Any

from bfl_tf.declare.settings import setting
from bfl_tf.server import posteriors


@dataclasses.dataclass(frozen=True)
class Fitted:
  """FedBE's Eq. 5: a Gaussian fitted to the clients' means."""

  def statistic(self, layout):
    return posteriors.FittedGaussian()

  def distribution(self, pooled, result, layout):
    return result, pooled


@dataclasses.dataclass(frozen=True)
class DirichletWeights:
  """FedBE's Eq. 7: convex combinations of the clients' models."""

  # Beyond these bounds draws in float32 are not finite.
  alpha: float = setting(
    1.0, 'Concentration alpha of the Dirichlet distribution.', ge=1e-30, lt=1e30
  )

  def statistic(self, layout):
    return posteriors.Updates()

  def distribution(self, pooled, result, layout):
    values = [model.values for model in result.models]
    return posteriors.SimplexMixture(values, result.shares, self.alpha), pooled


@dataclasses.dataclass(frozen=True)
class Pooled:
  """The pooled posterior."""

  def statistic(self, layout):
    if not layout.size('loc'):
      raise ValueError(
        '--ensemble.posterior=pooled needs a posterior over weights: set '
        '--variant=flipout or a client part that gives all weights a '
        'posterior, or choose gaussian or dirichlet_weights.'
      )

  def distribution(self, pooled, result, layout):
    return posteriors.of_model(pooled), pooled.at_a_point()


@dataclasses.dataclass(frozen=True)
class Auto:
  """`pooled` for models with random weights, `gaussian` for others."""

  def statistic(self, layout):
    return self._of(layout).statistic(layout)

  def distribution(self, pooled, result, layout):
    return self._of(layout).distribution(pooled, result, layout)

  def _of(self, layout):
    return Pooled() if layout.size('loc') else Fitted()


TEACHER_POSTERIORS: dict[str, Any] = {
  'auto': Auto,
  'gaussian': Fitted,
  'dirichlet_weights': DirichletWeights,
  'pooled': Pooled,
}
