"""Gaussians over global models: fitted to the clients (FedBE), or pooled.

Notation (FedBE, Eq. 5): mu = sum_i |D_i| / |D| w_i,
Sigma = diag(sum_i |D_i| / |D| (w_i - mu)^2).

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, section 3.3.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import statistics, weights
from bfl_tf.startup import tfd


@dataclasses.dataclass(frozen=True)
class FittedGaussian:
  """Eq. 5 as a streaming Statistic, with the weights of the round."""

  def accumulate(self, update, weight, reference) -> statistics.Sums:
    delta = delta_of(update, reference)
    return statistics.single(
      weight, {'delta': weight * delta, 'square': weight * np.square(delta)}
    )

  def finalize(
    self, sums, reference
  ) -> tuple[tfd.MultivariateNormalDiag, dict[str, float]]:
    total = sums.value('weight')
    delta = sums.value('delta') / total
    variance = sums.value('square') / total - np.square(delta)
    # If all clients agree, rounding may make the variance negative.
    scale = np.sqrt(np.maximum(variance, 0.0))
    return normal(reference.values + delta, scale), {}


def delta_of(update, reference) -> np.ndarray:
  """Returns the change of `Weights.values` by an update, in float64."""
  return update.model.values.astype(np.float64) - reference.values


def normal(loc, scale) -> tfd.MultivariateNormalDiag:
  """Returns N(loc, scale^2) in float32."""
  return tfd.MultivariateNormalDiag(
    loc.astype(np.float32), scale.astype(np.float32)
  )


def of_model(model: weights.Weights) -> tfd.Distribution:
  """Returns a model's posterior over `Weights.values`.

  Deterministic values have scale 0.
  """
  held = model.values.size - model.loc.size
  whole = model._replace(
    loc=model.values,
    scale=np.pad(model.scale, (0, held)),
    factor=np.pad(model.factor, ((0, 0), (0, held))),
  )
  return weights.distribution(whole)
