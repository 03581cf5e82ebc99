"""SWAG beside HMC on the Wisconsin breast cancer set (FL-SWAG, section 6).

The thesis's network has three hidden layers, 21 401 weights and one output; its
widths are not printed: 128, 120 and 16 make that number.

Notation: SWAG's factor F [rank, P] = U S V^T, its covariance D^2 + F^T F, D the
diagonal of its scales; a point of its low-rank subspace is mean + V u. A draw
of SWAG has there, by projection, u ~ N(0, S^2 + V^T D^2 V). The chains'
coordinates are u: the prior is as wide in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bfl_tf import federation, models, seeds
from bfl_tf.config.config import Config
from bfl_tf.startup import tf, tf_keras
from bfl_tf.weights import Weights
from experiments.reference_posteriors import chains, energy

WIDTHS = (128, 120, 16)
PRIOR_SCALE = 1.0
_NUM_EXAMPLES = 455
# Of HMC; each begins at a draw of SWAG.
_NUM_CHAINS = 2


def network(input_shape, num_classes, kernel_initializer, seed):
  """One logit against 0: 21 401 weights on 30 features."""
  del num_classes
  inner = models.build(
    'mlp',
    variant='deterministic',
    input_shape=input_shape,
    num_classes=1,
    kernel_initializer=kernel_initializer,
    seed=seed,
    hidden_units=WIDTHS,
  )
  logits = tf_keras.layers.ZeroPadding1D((1, 0))(inner.output[..., tf.newaxis])
  return tf_keras.Model(inner.input, logits[..., 0])


def config(seed: int, epochs: int, rank: int) -> Config:
  """SWAG on all examples in one place, under the prior that HMC has."""
  return Config(
    dataset='breast_cancer',
    model='experiments.reference_posteriors.toy:network',
    variant='deterministic',
    num_clients=1,
    num_rounds=1,
    local_epochs=epochs,
    batch_size=32,
    client_optimizer='sgd',
    client_learning_rate=0.1,
    client_weight_decay=1 / (_NUM_EXAMPLES * PRIOR_SCALE**2),
    client_parts=('swag',),
    pooling='product',
    seed=seed,
    settings={'swag.rank': rank, 'swag.period': 15, 'swag.burn_in': 0.5},
  )


class Fitted(NamedTuple):
  """SWAG's posterior and the density that it approximates.

  Attributes:
    model: the posterior.
    density: log posterior of `[num_trainable]`.
  """

  model: Weights
  density: Callable[[tf.Tensor], tf.Tensor]


def fit(settings: Config) -> Fitted:
  """Trains SWAG; the density is of the same network on the same examples."""
  experiment = federation.Experiment.build(settings)
  state = federation.initial_state(experiment).state
  played = federation.federated_round(experiment, state)
  dataset = experiment.dataset
  x = (dataset.train.x - dataset.mean) / dataset.std
  density = energy.log_posterior(
    experiment.method.build_model(), x, dataset.train.y, PRIOR_SCALE
  )
  return Fitted(played.state.model, density)


class Subspace(NamedTuple):
  """The subspace of SWAG's factor: `origin + u @ directions`.

  Attributes:
    origin: `[num_trainable]`, SWAG's mean.
    directions: `[rank, num_trainable]`, orthonormal, the factor's widest first.
    root: `[rank, rank]`; `root @ root.T` is the covariance of SWAG's draws
      along them.
  """

  origin: np.ndarray
  directions: np.ndarray
  root: np.ndarray

  @classmethod
  def of(cls, model: Weights) -> Subspace:
    """Turns a model's factor to its principal directions."""
    _, scales, rows = np.linalg.svd(
      model.factor.astype(np.float64), full_matrices=False
    )
    kept = scales > 1e-6 * scales[0]
    directions, scales = rows[kept], scales[kept]
    diagonal = directions * np.square(model.scale, dtype=np.float64)
    covariance = np.diag(scales**2) + diagonal @ directions.T
    root = np.linalg.cholesky(covariance)
    return cls(model.loc, directions.astype(np.float32), root)

  def sample(self, rng: np.random.Generator, num_draws: int) -> np.ndarray:
    """Returns SWAG's draws, projected: `[num_draws, rank]` float32."""
    draws = rng.normal(size=[num_draws, len(self.root)])
    return (draws @ self.root.T).astype(np.float32)

  def weights(self, u: np.ndarray) -> np.ndarray:
    """Returns `[num_draws, num_trainable]`."""
    return self.origin + u @ self.directions


class Compared(NamedTuple):
  """Draws in the subspace's coordinates, and how far they are apart.

  Attributes:
    swag: `[num_draws, rank]`.
    hmc: `[num_draws, rank]`, of the chains.
    deviation: between SWAG's and HMC's draws, a mean over weights.
    halves: between two halves of HMC's, likewise.
    of_means: between the means of SWAG's and of HMC's draws.
    spread_ratio: SWAG's standard deviation over HMC's, median coordinate.
    chains: Samples of HMC.
  """

  swag: np.ndarray
  hmc: np.ndarray
  deviation: float
  halves: float
  of_means: float
  spread_ratio: float
  chains: chains.Chains


def deviation(left: np.ndarray, right: np.ndarray) -> float:
  """Mean over pairs and coordinates of |left - right|; `[num_draws, P]`."""
  return float(np.mean([np.abs(a - b).mean() for a, b in zip(left, right)]))


def compare(
  fitted: Fitted,
  seed: int,
  num_draws: int,
) -> Compared:
  """Samples both in SWAG's subspace, equally many draws.

  Args:
    fitted: Result of SWAG.
    seed: Random seed of the draws.
    num_draws: Number of draws of each method; of HMC over all chains.
  """
  space = Subspace.of(fitted.model)
  rank = len(space.directions)
  rng = seeds.generator(seed, 'swag_draws')
  swag = space.sample(rng, num_draws)
  found = chains.sample(
    energy.in_subspace(fitted.density, space.origin, space.directions),
    space.sample(rng, _NUM_CHAINS),
    num_samples=num_draws // _NUM_CHAINS,
    burn_in=num_draws // _NUM_CHAINS,
    step_size=1e-2,
    seed=seeds.named(seed, 'hmc_subspace'),
    num_leapfrog_steps=20,
  )
  hmc = found.samples.reshape(-1, rank)
  far, near = space.weights(swag), space.weights(hmc)
  half = len(near) // 2
  return Compared(
    swag,
    hmc,
    deviation(far, near),
    deviation(near[:half], near[half:]),
    float(np.abs(far.mean(0) - near.mean(0)).mean()),
    float(np.median(swag.std(0) / hmc.std(0))),
    found,
  )
