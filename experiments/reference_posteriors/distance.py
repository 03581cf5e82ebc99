"""Distance of a model from the true posterior of a logistic regression.

Notation: P weights, p the true posterior under the prior N(0, I), as chains of
HMC sample it, N(mu, S) its moments; q the model, a Gaussian over all weights or
a point; A and B square roots of the covariances of q and p, A A^T and B B^T.
  W2^2 = |m - mu|^2 + tr A A^T + tr B B^T - 2 tr |A^T B|
|A^T B| has the singular values of A^T B. Of a name with `_diagonal` both have
their marginal variances alone; `kl_to_truth` is KL[q, p], p by its moments.

Shifted inputs are test inputs with N(0, 1) noise on each standardised feature.

References:
  M. Gelbrich. On a formula for the L2 Wasserstein metric between measures on
  Euclidean and Hilbert spaces. 1990.
  I. Osband et al. The neural testbed: Evaluating joint predictions. 2022.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, NamedTuple

import numpy as np
from scipy import special

from bfl_tf import data as data_lib
from bfl_tf import models, seeds, server, weights
from bfl_tf.config.settings import Setting
from bfl_tf.startup import tfd
from experiments.reference_posteriors import chains, energy

_NUM_CHAINS = 4
# Draws of each side of a comparison of predictions.
_NUM_DRAWS = 500
# Test examples whose labels are predicted together, and ways to group them.
_TOGETHER, _GROUPINGS = 10, 20
# Weights up to which chains tell a whole covariance, and it costs little.
_MOST_DENSE = 100
# Twelve leave a slope of 1e-13 on digits.
_NEWTON_STEPS = 12


class Gaussian(NamedTuple):
  """N(mean, root root^T), float64.

  Attributes:
    mean: `[P]`.
    root: `[P, rank]`, or `[P]` of a diagonal one; zeros of a point.
  """

  mean: np.ndarray
  root: np.ndarray

  @classmethod
  def of_model(cls, model: weights.Weights) -> Gaussian:
    """A model's own; a network without random weights is a point."""
    mean = model.mean.astype(float)
    scale = np.pad(model.scale, (0, mean.size - model.scale.size))
    if not model.factor.size:
      return cls(mean, scale.astype(float))
    root = [np.diag(scale), model.factor.T]
    return cls(mean, np.concatenate(root, 1, dtype=float))

  @property
  def dense(self) -> np.ndarray:
    """`[P, rank]`, the root."""
    return np.diag(self.root) if self.root.ndim == 1 else self.root

  @property
  def diagonal(self) -> Gaussian:
    """Returns the Gaussian with its marginal variances only."""
    if self.root.ndim == 1:
      return self
    return Gaussian(self.mean, np.sqrt(np.square(self.root).sum(1)))

  def distribution(self) -> tfd.Distribution:
    """Returns the tfp distribution, with scales above zero."""
    if self.root.ndim == 1:
      return tfd.MultivariateNormalDiag(self.mean, self.root)
    lower = np.linalg.cholesky(self.root @ self.root.T)
    return tfd.MultivariateNormalTriL(self.mean, lower)

  def sample(self, num_draws: int) -> np.ndarray:
    """`[num_draws, P]`, by the same normal numbers at each call."""
    dense = self.dense
    noise = seeds.generator(0, 'distance_draws').standard_normal(
      [num_draws, dense.shape[1]]
    )
    return self.mean + noise @ dense.T


def wasserstein(q: Gaussian, p: Gaussian) -> float:
  """Wasserstein-2 distance, in the unit of a weight."""
  if q.root.ndim == p.root.ndim == 1:
    spread = np.square(q.root - p.root).sum()
  else:
    both = np.linalg.norm(q.dense.T @ p.dense, 'nuc')
    spread = np.square(q.root).sum() + np.square(p.root).sum() - 2 * both
  return float(np.sqrt(np.square(q.mean - p.mean).sum() + max(spread, 0.0)))


def divergence(q: Gaussian, p: Gaussian) -> float:
  """KL[q, p] in nats."""
  return float(tfd.kl_divergence(q.distribution(), p.distribution()))


def log_probabilities(draws: np.ndarray, x: np.ndarray) -> np.ndarray:
  """Log probabilities `[num_draws, num_examples, C]` of draws `[num_draws, P]`.

  Args:
    draws: the kernel `[num_features, C]`, then the bias, of each.
    x: `[num_examples, num_features]`, standardised.
  """
  with_one = np.pad(x, ((0, 0), (0, 1)), constant_values=1)
  kernels = draws.reshape(len(draws), with_one.shape[1], -1)
  logits = with_one.astype(np.float32) @ kernels.astype(np.float32)
  return special.log_softmax(logits, -1)


def total_variation(left: np.ndarray, right: np.ndarray) -> float:
  """Returns the mean distance of predictions `[num_examples, C]`, in [0, 1]."""
  return float(0.5 * np.abs(left - right).sum(-1).mean())


def joint_nll(log_probs: np.ndarray, labels: np.ndarray) -> float:
  """-log p(labels of a group | its inputs) / size of a group, in nats.

  The mean over groups of ten examples at random, the same at each call.

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
  """The Gaussian at the mode of the posterior, by Newton's method.

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
    inputs: standardised, `[num_examples, num_features]`, by name.
    labels: `[num_examples]`, of the test inputs.
  """

  draws: np.ndarray
  inputs: dict[str, np.ndarray]
  labels: np.ndarray

  @functools.cached_property
  def gaussian(self) -> Gaussian:
    """Returns the Gaussian with the moments of the chains."""
    draws = self.draws.reshape(-1, self.draws.shape[-1]).astype(float)
    return Gaussian(draws.mean(0), np.linalg.cholesky(np.cov(draws.T)))

  @functools.cached_property
  def predicted(self) -> tuple[dict[str, np.ndarray], float]:
    """Returns the predictions of well-separated draws of the chains."""
    draws = self.draws.reshape(-1, self.draws.shape[-1])
    return self.predict(draws[:: max(1, len(draws) // _NUM_DRAWS)])

  def predict(self, draws: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    """Probabilities `[num_examples, C]` by inputs, and the joint NLL."""
    found = {n: log_probabilities(draws, x) for n, x in self.inputs.items()}
    probs = {name: np.exp(each).mean(0) for name, each in found.items()}
    return probs, joint_nll(found['test'], self.labels)

  def columns(self, q: Gaussian) -> dict[str, float]:
    """Returns the distances of `q` by name, without infinite ones."""
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
    """Returns the smallest distances that the chains can resolve.

    `_halves`: the Gaussian of half the chains, against the other half.
    `_factorised`: the diagonal Gaussian of least KL[q, p], which is the best
    that mean-field variational inference can do. `_hmc`: the chains' own; R-hat
    of weights and of their squares.
    """
    half = len(self.draws) // 2
    first, second = (
      dataclasses.replace(self, draws=draws)
      for draws in (self.draws[:half], self.draws[half:])
    )
    inverse = np.linalg.inv(self.gaussian.root)
    # The precision's diagonal is that of inverse^T inverse.
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
  """Samples the posterior of all training examples, once a process.

  Args:
    dataset: Value of `--dataset`.
    num_samples: Number of samples of each of four chains, which start at draws
      of the prior and have half as many warm-up steps.
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
  # In coordinates in which the posterior is about as wide everywhere.
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
    # A quarter of a circle: the step that is accepted falls so with the size.
    num_leapfrog_steps=round(1.1 * origin.size**0.25),
  )
  flat = test.reshape(len(test), -1)
  shifted = flat + seeds.generator(0, f'{name}_shift').normal(size=flat.shape)
  inputs = {'test': flat, 'shifted': shifted}
  draws = origin + found.samples @ directions
  return Truth(draws, inputs, data.test.y)


@dataclasses.dataclass(frozen=True)
class Distance(server.Stage):
  """Writes how far each round's model is into `metrics.csv`; changes nothing.

  The floors are in the first round's row.
  """

  dataset: Annotated[str, Setting('Data set of the run.')] = 'digits'
  samples: Annotated[int, Setting('Number of samples per chain.', ge=10)] = 4000

  name = 'distance'

  def __call__(self, state, reference, pooled, statistics, seed):
    of_hmc = truth(self.dataset, self.samples)
    columns = of_hmc.columns(Gaussian.of_model(state.model))
    return state, columns | (of_hmc.floors if state.round == 0 else {})
