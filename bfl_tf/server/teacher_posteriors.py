"""Distributions that the models of group S are sampled from."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import weights
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Keep, Part
from bfl_tf.server import posteriors


@dataclasses.dataclass(frozen=True)
class Gaussian(Part):
  """A Gaussian fitted to the clients' models (FedBE, Eq. 5).

  Notation: mu = sum_i |D_i| / |D| w_i,
  Sigma = diag(sum_i |D_i| / |D| (w_i - mu)^2).
  """

  def terms(
    self, update: Any, weight: float, broadcast: weights.Weights
  ) -> Mapping[str, Any]:
    """Returns terms of one client, as in `parts.Server.terms`."""
    delta = update.model.values.astype(np.float64) - broadcast.values
    return {'delta': weight * delta, 'square': weight * np.square(delta)}

  def distribution(
    self, pooled: weights.Weights, sums: Mapping[str, Any], broadcast: Any
  ) -> tuple[Any, weights.Weights]:
    """Returns the distribution over `Weights.values`.

    The second result is the model that provides all other vectors.
    """
    delta, square = (sums[k] / sums['weight'] for k in ('delta', 'square'))
    # If all clients agree, rounding may make the variance negative.
    scale = np.sqrt(np.maximum(square - np.square(delta), 0.0))
    return posteriors.normal(broadcast.values + delta, scale), pooled


@dataclasses.dataclass(frozen=True)
class DirichletWeights(Gaussian):
  """FedBE's Eq. 7: convex combinations of the clients' models."""

  # Beyond these bounds draws in float32 are not finite.
  alpha: float = setting(
    1.0, 'Concentration alpha of the Dirichlet distribution.', ge=1e-30, lt=1e30
  )

  def terms(self, update, weight, broadcast):
    return {'models': Keep(update.model), 'weights': Keep(weight)}

  def distribution(self, pooled, sums, broadcast):
    values = [model.values for model in sums['models']]
    shares = np.array(sums['weights']) / sum(sums['weights'])
    return posteriors.SimplexMixture(values, shares, self.alpha), pooled


@dataclasses.dataclass(frozen=True)
class PooledPosterior(Gaussian):
  """The pooled posterior."""

  def terms(self, update, weight, broadcast):
    return {}

  def distribution(self, pooled, sums, broadcast):
    return posteriors.of_model(pooled), pooled.at_a_point()


@dataclasses.dataclass(frozen=True)
class AutoPosterior(Gaussian):
  """`pooled` for models with random weights, `gaussian` for others."""

  def terms(self, update, weight, broadcast):
    return self._of(broadcast).terms(update, weight, broadcast)

  def distribution(self, pooled, sums, broadcast):
    return self._of(broadcast).distribution(pooled, sums, broadcast)

  def _of(self, broadcast):
    return PooledPosterior() if broadcast.loc.size else Gaussian()


TEACHER_POSTERIORS: dict[str, Any] = {
  'auto': AutoPosterior,
  'gaussian': Gaussian,
  'dirichlet_weights': DirichletWeights,
  'pooled': PooledPosterior,
}
