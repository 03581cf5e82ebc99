"""Gaussians over global models."""

from __future__ import annotations

import numpy as np

from bfl_tf import weights
from bfl_tf.startup import tfd


def normal(loc, scale) -> tfd.MultivariateNormalDiag:
  """Returns N(loc, scale^2) in float32."""
  return tfd.MultivariateNormalDiag(
    loc.astype(np.float32), scale.astype(np.float32)
  )


def of_model(model: weights.Weights) -> tfd.Distribution:
  """Returns a model's posterior over `Weights.values`.

  Deterministic values have scale 0.
  """
  padding = model.values.size - model.loc.size
  whole = model._replace(
    loc=model.values,
    scale=np.pad(model.scale, (0, padding)),
    factor=np.pad(model.factor, ((0, 0), (0, padding))),
  )
  return weights.distribution(whole)
