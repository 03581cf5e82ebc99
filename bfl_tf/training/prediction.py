"""Predictions of models and of groups of models.

Only one batch of one Monte Carlo sample is in memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import math
import types
from typing import Any

import numpy as np
from scipy import optimize

from bfl_tf import seeds, weights
from bfl_tf.training import devices
from bfl_tf.training.likelihoods import Likelihood
from bfl_tf.training.predictive import Predictive

BATCH_SIZE = 256
# Batches per compiled call; single batches would slow small networks by a
# quarter.
_BATCHES = 8


def predict(
  workers: Sequence,
  model: weights.Weights,
  x: np.ndarray,
  *,
  seed: np.ndarray,
  num_samples: int = 1,
) -> Predictive:
  """Predicts examples on all workers.

  Args:
    x: `[num_examples, ...]` raw examples.
    seed: `[2]` int32.
    num_samples: Number of Monte Carlo samples; a deterministic model needs 1.

  Returns:
    The predictions, bit-for-bit identical for any number of workers.
  """
  (predictive,) = _predict_each(workers, [(model, seed)], x, num_samples)
  return predictive


def predict_linearized(
  workers: Sequence,
  model: weights.Weights,
  changes: Iterable[np.ndarray],
  x: np.ndarray,
) -> Iterator[Predictive]:
  """Yields the predictions of the linearized model for each change of means.

  Arguments as in `Predictor.predict_linearized`.
  """
  yield from _predict_each(workers, ((model, each) for each in changes), x)


def predict_members(
  workers: Sequence,
  groups: Mapping[str, Sequence[weights.Weights]],
  x: np.ndarray,
  *,
  seed: np.ndarray,
  num_samples: int = 1,
) -> Iterator[tuple[str, Predictive]]:
  """Predicts with every member of every group, in order."""
  names = [name for name, group in groups.items() for _ in range(len(group))]
  members = (member for group in groups.values() for member in group)
  seeded = (
    (member, seeds.child(seed, number)) for number, member in enumerate(members)
  )
  number = workers[0].inference.num_layer_samples(num_samples)
  yield from zip(names, _predict_each(workers, seeded, x, number))


def _predict_each(
  workers: Sequence,
  models: Iterable[tuple[weights.Weights, np.ndarray]],
  x: np.ndarray,
  num_samples: int = 0,
) -> Iterator[Predictive]:
  """Yields the predictions of models with their seeds, in order.

  Without samples, a change of the means is in the place of the seed.

  A worker without work continues with the next model, so that no worker waits
  for another one at the end of a model.
  """
  # All workers get the same number of calls per model, with equally many
  # batches or one more.
  batches = math.ceil(len(x) / BATCH_SIZE)
  calls = len(workers) * math.ceil(batches / (len(workers) * _BATCHES))
  parts = np.array_split(np.arange(batches), min(calls, batches))
  jobs = (
    (number, *model_and_seed, part)
    for number, model_and_seed in enumerate(models)
    for part in parts
  )
  loaded: dict[int, weights.Weights] = {}

  def call(worker, job):
    number, model, seed, part = job
    if loaded.get(id(worker)) is not model:
      worker.load(model)
      loaded[id(worker)] = model
    start, end = part[0] * BATCH_SIZE, (part[-1] + 1) * BATCH_SIZE
    if not num_samples:
      return number, start, worker.predict_linearized(x[start:end], seed)
    return number, start, worker.predict(x[start:end], seed, num_samples)

  predictions: dict[int, dict[int, Predictive]] = {}
  following = 0
  for number, start, prediction in devices.in_parallel(workers, jobs, call):
    predictions.setdefault(number, {})[start] = prediction
    while len(predictions.get(following, ())) == len(parts):
      done = predictions.pop(following)
      following += 1
      in_order = (done[start] for start in sorted(done))
      yield Predictive(*map(np.concatenate, zip(*in_order)))


class Mixtures:
  """Mixtures of predictions by group, with equal weights by default.

  The variance of a mixture is the mean variance of its members plus the
  variance of their means, computed with centered sums (Chan et al. 1979).

  A group may interpolate between the mixture and the product of its members:
  log p = beta sum_k log p_k + (1 - beta) log mean_k p_k + constant (Hasan et
  al. 2024, beta-Predictive Bayes). For numbers, the mixture is replaced by the
  Gaussian with its mean and variance.
  """

  def __init__(
    self,
    likelihood: Likelihood,
    betas: Mapping[str, float] = types.MappingProxyType({}),
  ):
    """Creates empty groups."""
    self._likelihood = likelihood
    self._sizes: dict[str, float] = {}
    self._mixed: dict[str, Predictive] = {}
    self._betas = betas
    self._products: dict[str, Any] = dict.fromkeys(betas, 0.0)

  def add(self, name: str, member: Predictive, weight: float = 1) -> bool:
    """Adds a member to a group, with a weight; returns whether it is finite.

    A member whose predictions are not finite is left out.
    """
    if not all(np.all(np.isfinite(values)) for values in member):
      return False
    size = self._sizes.get(name, 0)
    self._mixed[name] = (
      _mix(size, self._mixed[name], weight, member) if size else member
    )
    self._sizes[name] = size + weight
    if name in self._betas:
      factor = self._likelihood.natural(member)
      self._products[name] = self._products[name] + factor
    return True

  def __contains__(self, name: str) -> bool:
    return name in self._sizes

  def union(self, names: Iterable[str]) -> Predictive:
    """Returns the mixture of all members of the named groups.

    One of them has members. A group that interpolates has no union with others.
    """
    first, *others = [name for name in names if name in self]
    size, mixed = self._sizes[first], self._mixed[first]
    if first in self._betas:
      natural = self._natural(first, self._betas[first])
      mixed = self._likelihood.of_natural(natural)
    for name in others:
      mixed = _mix(size, mixed, self._sizes[name], self._mixed[name])
      size += self._sizes[name]
    return Predictive(*(np.asarray(v, np.float32) for v in mixed))

  def best_beta(self, name: str, labels: np.ndarray) -> float:
    """Returns the beta in [0, 1] with the largest likelihood of the labels."""

    # It is convex in beta, since natural parameters are linear in beta.
    def nll(beta):
      natural = self._natural(name, beta)
      return -self._likelihood.log_prob(natural, labels).mean()

    return float(optimize.minimize_scalar(nll, bounds=(0, 1)).x)

  def _natural(self, name, beta):
    mixture = self._likelihood.natural(self._mixed[name])
    return beta * self._products[name] + (1 - beta) * mixture


def _mix(size, mixed, other_size, other):
  share = other_size / (size + other_size)
  probs = mixed.mean.astype(np.float64)
  delta = other.mean - probs
  between = share * (1.0 - share) * np.square(delta).sum(-1)
  return Predictive(
    probs + share * delta,
    mixed.aleatoric + share * (other.aleatoric - mixed.aleatoric),
    mixed.epistemic + share * (other.epistemic - mixed.epistemic) + between,
    (1.0 - share) * mixed.expected_entropy + share * other.expected_entropy,
  )


def recalibrate(
  workers: Sequence, model: weights.Weights, x: np.ndarray, *, seed: np.ndarray
) -> weights.Weights:
  """Re-estimates the moving statistics of batch normalization.

  Args:
    model: Model whose buffers are replaced; without buffers, it is returned
      unchanged. Other arguments are as in `predict`.

  Returns:
    The model with the mean of the batches' statistics as its buffers.
  """
  if not model.buffers.size:
    return model
  for worker in workers:
    worker.load(model)
  # A small last batch would bias the variance, so batches have similar sizes.
  count = max(1, len(x) // BATCH_SIZE)

  def measure(worker, index):
    draw = seeds.child(seed, index)
    return index, worker.batch_statistics(x[index::count], draw)

  measured = dict(devices.in_parallel(workers, range(count), measure))
  average = np.mean([measured[i].astype(np.float64) for i in range(count)], 0)
  return model._replace(buffers=average.astype(np.float32))
