"""Predictions of a global model, with samples of its posterior or its mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfl_tf import seeds, training, weights
from bfl_tf.server import posteriors


def predict(
  workers: Sequence[training.Predictor],
  model: weights.Weights,
  x: np.ndarray,
  *,
  seed: np.ndarray,
  num_samples: int,
) -> training.Predictive:
  """Predicts examples with a number of samples of the posterior.

  A sample is a set of weights, and dropout masks if the network has dropout,
  for all examples. Predictions therefore do not depend on the order of the
  examples. Samples of a posterior over all weights have the pooled statistics
  of batch normalization.

  Args:
    x: `[num_examples, ...]` raw examples.
    seed: `[2]` int32.
    num_samples: Number of samples; with 1, a posterior over all weights
      predicts with its mean.

  Returns:
    The predictions, bit-for-bit identical for any number of workers; NaN if no
    sample has finite predictions.
  """
  if workers[0].inference.scope != 'all' or num_samples == 1:
    return training.predict(
      workers, model, x, seed=seed, num_samples=num_samples
    )
  draws = sample(workers, model, seeds.child(seed, 0), num_samples)
  return mixture(workers, draws, x, seed=seeds.child(seed, 1))


def mixture(
  workers: Sequence[training.Predictor],
  members: Sequence[weights.Weights],
  x: np.ndarray,
  *,
  seed: np.ndarray,
  num_samples: int = 1,
) -> training.Predictive:
  """Predicts with the mixture of models; arguments as in `predict`."""
  mixtures = training.Mixtures(workers[0].likelihood)
  for name, member in training.predict_members(
    workers, {'S': members}, x, seed=seed, num_samples=num_samples
  ):
    last = member
    mixtures.add(name, member)
  return mixtures.union(['S']) if 'S' in mixtures else last


def sample(
  workers: Sequence[training.Predictor],
  model: weights.Weights,
  seed: np.ndarray,
  num_models: int,
) -> Sequence[weights.Weights]:
  """Returns models whose weights are drawn from the posterior."""
  return posteriors.Draws(
    posteriors.of_model(model),
    model.at_a_point(),
    workers[0].layout.is_variance(),
    seed,
    num_models,
    min_variance=0.0,
  )
