"""Gaussians over global models: fitted to the clients (FedBE), or pooled.

Notation (FedBE, Eq. 5): mu = sum_i |D_i| / |D| w_i,
Sigma = diag(sum_i |D_i| / |D| (w_i - mu)^2).

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bfl_tf import weights
from bfl_tf.startup import tfd


def fit_terms(
  update: Any, weight: float, broadcast: weights.Weights
) -> dict[str, np.ndarray]:
  """Returns the terms of `fitted`, as in `parts.Server.terms`."""
  delta = update.model.values.astype(np.float64) - broadcast.values
  return {'delta': weight * delta, 'square': weight * np.square(delta)}


def fitted(
  sums: Mapping[str, Any], broadcast: weights.Weights
) -> tfd.MultivariateNormalDiag:
  """Returns Eq. 5 over `Weights.values`, with the weights of the round."""
  delta, square = (sums[k] / sums['weight'] for k in ('delta', 'square'))
  # If all clients agree, rounding may make the variance negative.
  scale = np.sqrt(np.maximum(square - np.square(delta), 0.0))
  return normal(broadcast.values + delta, scale)


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
