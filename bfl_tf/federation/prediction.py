"""Predictions of a global model, with samples of its posterior or its mean."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bfl_tf import data, metrics, seeds, training, weights
from bfl_tf.server import posteriors

# Factors that `fitted_factor` chooses from.
FACTORS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)


def num_samples(
  inference: training.Inference, wanted: int, factor: float | None
) -> int:
  """Returns the number of samples that a posterior needs: `wanted`, or 1."""
  if factor is None:
    return inference.num_samples(wanted)
  return wanted if factor else 1


def scaled(model: weights.Weights, factor: float | None) -> weights.Weights:
  """Returns a model with a factor on its standard deviations."""
  if factor in (None, 1) or not model.loc.size:
    return model
  if not factor:
    return model.at_a_point()
  number = np.float32(factor)
  return model._replace(
    scale=np.maximum(number * model.scale, weights.POINT_SCALE),
    factor=number * model.factor,
  )


def fitted_factor(
  workers: Sequence[training.Predictor],
  model: weights.Weights,
  split: data.Split,
  *,
  seed: np.ndarray,
  num_samples: int,
) -> float:
  """Returns the factor of `FACTORS` with the lowest NLL on held-out examples.

  0, the mean, replaces it if no factor has a finite NLL. Arguments as in
  `predict`.
  """

  def nll(factor):
    predictive = predict(
      workers,
      scaled(model, factor),
      split.x,
      seed=seed,
      num_samples=num_samples if factor else 1,
    )
    evaluation = workers[0].likelihood.evaluation(predictive, split.y)
    value = metrics.summarize(evaluation)['nll']
    return value if np.isfinite(value) else np.inf

  return min(FACTORS, key=nll)


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
    num_samples: Number of samples; with 1, a posterior over all weights or a
      linearized model predicts with its mean.

  Returns:
    The predictions, bit-for-bit identical for any number of workers; NaN if no
    sample has finite predictions.
  """
  if num_samples == 1 or _has_layers(workers):
    return training.predict(
      workers, model, x, seed=seed, num_samples=num_samples
    )
  members = samples(workers, model, x, seed=seed, num_samples=num_samples)
  return _mixed(workers, members)


def samples(
  workers: Sequence[training.Predictor],
  model: weights.Weights,
  x: np.ndarray,
  *,
  seed: np.ndarray,
  num_samples: int,
) -> Iterator[training.Predictive]:
  """Yields the predictions of samples, one by one; arguments as in `predict`.

  They are the samples of `predict`, unless layers draw them.
  """
  if _has_layers(workers):
    for number in range(num_samples):
      draw = seeds.child(seed, number)
      yield training.predict(workers, model, x, seed=draw)
    return
  draws = sample(workers, model, seeds.child(seed, 0), num_samples)
  if workers[0].inference.is_linearized:
    changes = (draw.mean - model.mean for draw in draws)
    yield from training.predict_linearized(workers, model, changes, x)
  else:
    yield from members_of(workers, draws, x, seed=seeds.child(seed, 1))


def _has_layers(workers) -> bool:
  """Returns whether layers draw the samples."""
  inference = workers[0].inference
  return inference.scope != 'all' and not inference.is_linearized


def mixture(
  workers: Sequence[training.Predictor],
  members: Sequence[weights.Weights],
  x: np.ndarray,
  **options: Any,
) -> training.Predictive:
  """Predicts with the mixture of models; options as in `predict`."""
  return _mixed(workers, members_of(workers, members, x, **options))


def members_of(
  workers: Sequence[training.Predictor],
  members: Sequence[weights.Weights],
  x: np.ndarray,
  **options: Any,
) -> Iterator[training.Predictive]:
  """Yields the predictions of models; options as in `predict`."""
  of_groups = training.predict_members(workers, {'S': members}, x, **options)
  return (predictive for _, predictive in of_groups)


def _mixed(workers, members) -> training.Predictive:
  """Returns the mixture of predictions that are finite."""
  mixtures = training.Mixtures(workers[0].likelihood)
  for member in members:
    last = member
    mixtures.add('S', member)
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
