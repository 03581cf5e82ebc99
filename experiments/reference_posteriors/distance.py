"""Distance of a model from the true posterior of a logistic regression.

Notation: P is the number of weights. p is the true posterior under the prior
N(0, I), sampled by HMC; N(mu, S) has its moments. q is the model: a Gaussian
over all weights, or a point, with mean m. A and B are square roots of the
covariances of q and p, A A^T and B B^T.
  W2^2 = |m - mu|^2 + tr A A^T + tr B B^T - 2 tr |A^T B|
|A^T B| has the singular values of A^T B. Names with `_diagonal` use only the
marginal variances of both. `kl_to_truth` is KL[q, p] with the moments of p.

Shifted inputs are test inputs with N(0, 1) noise on each standardised feature.

References:
  M. Gelbrich. On a formula for the L2 Wasserstein metric between measures on
  Euclidean and Hilbert spaces. 1990.
  I. Osband et al. The neural testbed: Evaluating joint predictions. 2022.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from scipy import special

from bfl_tf import data as data_lib
from bfl_tf import models, seeds, weights
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Outcome, Server
from bfl_tf.startup import tfd
from experiments.reference_posteriors import chains, energy

_NUM_CHAINS = 4
# Number of draws of each posterior for a comparison of predictions.
_NUM_DRAWS = 500
# Number of test examples per group of the joint NLL, and of random groupings.
_TOGETHER, _GROUPINGS = 10, 20
# Largest number of weights for which the chains estimate a full covariance.
_MOST_DENSE = 100
# After twelve steps the gradient on digits is 1e-13.
_NEWTON_STEPS = 12


class Gaussian(NamedTuple):
  """N(mean, root root^T), float64.

  Attributes:
    mean: `[P]`.
    root: `[P, rank]`, or `[P]` if diagonal; zeros for a point.
  """

  mean: np.ndarray
  root: np.ndarray

  @classmethod
  def of_model(cls, model: weights.Weights) -> Gaussian:
    """Returns the Gaussian of a model; deterministic networks are points."""
    mean = model.mean.astype(float)
    scale = np.pad(model.scale, (0, mean.size - model.scale.size))
    if not model.factor.size:
      return cls(mean, scale.astype(float))
    root = [np.diag(scale), model.factor.T]
    return cls(mean, np.concatenate(root, 1, dtype=float))

  @classmethod
  def of_samples(cls, samples: np.ndarray) -> Gaussian:
    """Returns the Gaussian with the moments of samples, `[num_samples, P]`."""
    mean = samples.mean(0, dtype=float)
    return cls(mean, (samples - mean).T / np.sqrt(len(samples) - 1))

  @property
  def dense(self) -> np.ndarray:
    """Root as a matrix, `[P, rank]`."""
    return np.diag(self.root) if self.root.ndim == 1 else self.root

  @property
  def diagonal(self) -> Gaussian:
    """Gaussian with the marginal variances only."""
    if self.root.ndim == 1:
      return self
    return Gaussian(self.mean, np.sqrt(np.square(self.root).sum(1)))

  def distribution(self) -> tfd.Distribution:
    """Returns the TFP distribution; all scales must be positive."""
    if self.root.ndim == 1:
      return tfd.MultivariateNormalDiag(self.mean, self.root)
    lower = np.linalg.cholesky(self.root @ self.root.T)
    return tfd.MultivariateNormalTriL(self.mean, lower)

  def sample(self, num_draws: int) -> np.ndarray:
    """Returns draws `[num_draws, P]`; the seed is the same at each call."""
    dense = self.dense
    noise = seeds.generator(0, 'distance_draws').standard_normal(
      [num_draws, dense.shape[1]]
    )
    return self.mean + noise @ dense.T


def wasserstein(q: Gaussian, p: Gaussian) -> float:
  """Returns the Wasserstein-2 distance, in the unit of a weight."""
  if q.root.ndim == p.root.ndim == 1:
    spread = np.square(q.root - p.root).sum()
  else:
    both = np.linalg.norm(q.dense.T @ p.dense, 'nuc')
    spread = np.square(q.root).sum() + np.square(p.root).sum() - 2 * both
  return float(np.sqrt(np.square(q.mean - p.mean).sum() + max(spread, 0.0)))


def divergence(q: Gaussian, p: Gaussian) -> float:
  """Returns KL[q, p] in nats."""
  return float(tfd.kl_divergence(q.distribution(), p.distribution()))


def log_probabilities(draws: np.ndarray, x: np.ndarray) -> np.ndarray:
  """Log probabilities `[num_draws, num_examples, C]` of draws `[num_draws, P]`.

  Args:
    draws: The kernel `[num_features, C]`, then the bias, of each draw.
    x: `[num_examples, num_features]`, standardised.
  """
  with_one = np.pad(x, ((0, 0), (0, 1)), constant_values=1)
  kernels = draws.reshape(len(draws), with_one.shape[1], -1)
  logits = with_one.astype(np.float32) @ kernels.astype(np.float32)
  return special.log_softmax(logits, -1)


def total_variation(left: np.ndarray, right: np.ndarray) -> float:
  """Returns the mean total variation of predictions `[num_examples, C]`."""
  return float(0.5 * np.abs(left - right).sum(-1).mean())


def joint_nll(log_probs: np.ndarray, labels: np.ndarray) -> float:
  """Returns -log p(labels of a group | its inputs) / group size, in nats.

  It is the mean over random groups of ten examples, the same at each call.

  Args:
    log_probs: `[num_draws, num_examples, C]`.
    labels: `[num_examples]`.
  """
  of_labels = log_probs[:, np.arange(labels.size), labels]
  rng = seeds.generator(0, 'distance_groups')
  size = min(_TOGETHER, labels.size)
  groups = np.concatenate(
    [
      rng.permutation(labels.size)[: labels.size // size * size].reshape(
        -1, size
      )
      for _ in range(_GROUPINGS)
    ]
  )
  joint = special.logsumexp(of_labels[:, groups].sum(-1), 0) - np.log(
    len(of_labels)
  )
  return float(-joint.mean() / size)


def laplace(x: np.ndarray, y: np.ndarray, num_classes: int) -> Gaussian:
  """Returns the Laplace approximation; Newton's method finds the mode.

  Args:
    x: `[num_examples, num_features]`, standardised.
    y: `[num_examples]`.
    num_classes: C.
  """
  x = np.pad(x, ((0, 0), (0, 1)), constant_values=1).astype(float)
  mode = np.zeros([x.shape[1], num_classes])
  for _ in range(_NEWTON_STEPS):
    probs = special.softmax(x @ mode, -1)
    slope = x.T @ (np.eye(num_classes)[y] - probs) - mode
    each = np.einsum('nf,nc->nfc', x, probs)
    flat = each.reshape(len(x), -1)
    precision = np.eye(mode.size) - flat.T @ flat
    blocks = precision.reshape(*mode.shape, *mode.shape)
    for c in range(num_classes):
      blocks[:, c, :, c] += x.T @ each[:, :, c]
    mode += np.linalg.solve(precision, slope.ravel()).reshape(mode.shape)
  covariance = np.linalg.inv(precision)
  return Gaussian(mode.ravel(), np.linalg.cholesky(covariance))


@dataclasses.dataclass(frozen=True)
class Truth:
  """Samples of the true posterior, and inputs to compare predictions on.

  Attributes:
    draws: `[num_chains, num_samples, P]`.
    inputs: Standardised inputs `[num_examples, num_features]`, by name.
    labels: Labels `[num_examples]` of the test inputs.
  """

  draws: np.ndarray
  inputs: dict[str, np.ndarray]
  labels: np.ndarray

  @functools.cached_property
  def gaussian(self) -> Gaussian:
    """Gaussian with the moments of the chains."""
    draws = self.draws.reshape(-1, self.draws.shape[-1]).astype(float)
    return Gaussian(draws.mean(0), np.linalg.cholesky(np.cov(draws.T)))

  @functools.cached_property
  def predicted(self) -> tuple[dict[str, np.ndarray], float]:
    """Result of `predict` for well-separated draws of the chains."""
    draws = self.draws.reshape(-1, self.draws.shape[-1])
    return self.predict(draws[:: max(1, len(draws) // _NUM_DRAWS)])

  def predict(self, draws: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    """Returns probabilities `[num_examples, C]` by inputs, and joint NLL."""
    found = {n: log_probabilities(draws, x) for n, x in self.inputs.items()}
    probs = {name: np.exp(each).mean(0) for name, each in found.items()}
    return probs, joint_nll(found['test'], self.labels)

  def columns(self, q: Gaussian) -> dict[str, float]:
    """Returns the finite distances of `q` from the posterior, by name."""
    probs, joint = self.predict(q.sample(_NUM_DRAWS))
    found = {'joint_nll': joint}
    for name, expected in self.predicted[0].items():
      found[f'tv_{name}'] = total_variation(probs[name], expected)
    p = self.gaussian
    pairs = {'_diagonal': (q.diagonal, p.diagonal)}
    if p.mean.size <= _MOST_DENSE:
      pairs[''] = q, p
    for name, (a, b) in pairs.items():
      found[f'w2{name}'] = wasserstein(a, b)
      if q.root.any():
        found[f'kl_to_truth{name}'] = divergence(a, b)
    return found

  @functools.cached_property
  def floors(self) -> dict[str, float]:
    """Smallest distances that the chains can resolve.

    `_halves`: distance of the Gaussian of half the chains from the other half.
    `_factorised`: distance of the diagonal Gaussian with the smallest KL[q, p],
    the optimum of mean-field variational inference. `_hmc`: diagnostics of the
    chains, with R-hat over weights and their squares.
    """
    half = len(self.draws) // 2
    first, second = (
      dataclasses.replace(self, draws=draws)
      for draws in (self.draws[:half], self.draws[half:])
    )
    inverse = np.linalg.inv(self.gaussian.root)
    # The precision is inverse^T inverse; only its diagonal is needed.
    scale = 1 / np.sqrt(np.square(inverse).sum(0))
    best = Gaussian(self.gaussian.mean, scale)
    squares = np.square(self.draws - self.gaussian.mean, dtype=np.float32)
    both = np.concatenate([self.draws, squares], -1)
    found = chains.Chains(both, *np.zeros([2, len(both)]))
    return {
      'r_hat_hmc': float(found.r_hat().max()),
      'effective_size_hmc': float(found.effective_size().min()),
      'joint_nll_hmc': self.predicted[1],
      **_named(first.columns(second.gaussian), 'halves'),
      **_named(self.columns(best), 'factorised'),
    }


def _named(columns, ending):
  return {f'{name}_{ending}': value for name, value in columns.items()}


@functools.cache
def truth(dataset: str, num_samples: int) -> Truth:
  """Samples the posterior of all training examples, once per process.

  Args:
    num_samples: Number of samples of each of four chains. Each has half as many
      burn-in steps before.
  """
  data = data_lib.load(dataset)
  shape, name = data.input_shape, f'truth_{dataset}'
  train, test = (
    ((split.x - data.mean) / data.std).astype(np.float32)
    for split in (data.train, data.test)
  )
  model = models.build(
    'logistic',
    variant='deterministic',
    input_shape=shape,
    num_classes=data.num_classes,
  )
  near = laplace(train.reshape(len(train), -1), data.train.y, data.num_classes)
  # In these coordinates, the posterior has about the same width everywhere.
  origin, directions = near.mean.astype(np.float32), np.float32(near.root.T)
  density = energy.log_posterior(model, train, data.train.y, prior_scale=1.0)
  rng = seeds.generator(0, f'{name}_starts')
  found = chains.sample(
    energy.in_subspace(density, origin, directions),
    2 * rng.standard_normal([_NUM_CHAINS, origin.size]),
    num_samples=num_samples,
    burn_in=num_samples // 2,
    step_size=0.3,
    seed=seeds.named(0, name),
    # The accepted step size falls as dimension^-0.25. The trajectory keeps the
    # length of a quarter of a circle.
    num_leapfrog_steps=round(1.1 * origin.size**0.25),
  )
  flat = test.reshape(len(test), -1)
  shifted = flat + seeds.generator(0, f'{name}_shift').normal(size=flat.shape)
  inputs = {'test': flat, 'shifted': shifted}
  draws = origin + found.samples @ directions
  return Truth(draws, inputs, data.test.y)


@dataclasses.dataclass(frozen=True)
class Distance(Server):
  """Adds distances of each round's model to `metrics.csv`.

  The model stays unchanged. The floors are in the row of the first round.
  """

  dataset: str = setting('digits', 'Data set of the run.')
  samples: int = setting(4000, 'Number of samples per chain.', ge=10)

  name = 'distance'

  def step(self, model, sums, slot, ctx):
    of_hmc = truth(self.dataset, self.samples)
    columns = of_hmc.columns(Gaussian.of_model(model))
    floors = of_hmc.floors if ctx.round == 0 else {}
    return Outcome(model, slot, columns | floors)
