"""SWAG and HMC on the Wisconsin breast cancer set (FL-SWAG, section 6).

The thesis's network has three hidden layers, 21 401 weights and one output. Its
widths are not printed; 128, 120 and 16 give this number of weights.

Notation: SWAG's factor is F [rank, P] = U S V^T. Its covariance is D^2 + F^T F,
with D the diagonal of its scales. A point of the low-rank subspace is
mean + V u. Projected draws of SWAG have u ~ N(0, S^2 + V^T D^2 V). The chains
sample u, in which the prior has the same width in all directions.
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
# Number of HMC chains; each starts at a draw of SWAG.
_NUM_CHAINS = 2


def network(input_shape, num_classes, kernel_initializer, seed):
  """Returns a network whose first logit is 0; 21 401 weights on 30 features."""
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
  """Returns the config of centralized SWAG, with the prior of HMC."""
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


class SwagFit(NamedTuple):
  """SWAG's posterior and the density that it approximates.

  Attributes:
    model: Posterior of SWAG.
    density: Log posterior of `[num_trainable]`.
  """

  model: Weights
  density: Callable[[tf.Tensor], tf.Tensor]


def fit(settings: Config) -> SwagFit:
  """Trains SWAG; the density has the same network and examples."""
  experiment = federation.Experiment.build(settings)
  state = federation.initial_state(experiment).state
  result = federation.federated_round(experiment, state)
  dataset = experiment.dataset
  x = (dataset.train.x - dataset.mean) / dataset.std
  density = energy.log_posterior(
    experiment.build_model(), x, dataset.train.y, PRIOR_SCALE
  )
  return SwagFit(result.state.model, density)


class Subspace(NamedTuple):
  """The subspace of SWAG's factor: `origin + u @ directions`.

  Attributes:
    origin: `[num_trainable]`, SWAG's mean.
    directions: `[rank, num_trainable]`, orthonormal, by decreasing width.
    root: `[rank, rank]`; `root @ root.T` is the covariance of SWAG's draws
      along the directions.
  """

  origin: np.ndarray
  directions: np.ndarray
  root: np.ndarray

  @classmethod
  def of(cls, model: Weights) -> Subspace:
    """Returns the subspace of the principal directions of a model's factor."""
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
    """Returns projected draws of SWAG, `[num_draws, rank]` float32."""
    draws = rng.normal(size=[num_draws, len(self.root)])
    return (draws @ self.root.T).astype(np.float32)

  def weights(self, u: np.ndarray) -> np.ndarray:
    """Returns the weights of coordinates, `[num_draws, num_trainable]`."""
    return self.origin + u @ self.directions


class Comparison(NamedTuple):
  """Draws in the subspace's coordinates, and their deviations.

  Attributes:
    swag: `[num_draws, rank]`.
    hmc: `[num_draws, rank]`, of all chains.
    deviation: Mean deviation of SWAG's from HMC's draws, over weights.
    halves: Mean deviation of two halves of HMC's draws, over weights.
    of_means: Mean deviation of the means of SWAG's and of HMC's draws.
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
  """Returns the mean of |left - right| over pairs of draws `[num_draws, P]`."""
  return float(np.mean([np.abs(a - b).mean() for a, b in zip(left, right)]))


def compare(
  fitted: SwagFit,
  seed: int,
  num_draws: int,
) -> Comparison:
  """Compares equally many draws of SWAG and HMC in SWAG's subspace."""
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
  return Comparison(
    swag,
    hmc,
    deviation(far, near),
    deviation(near[:half], near[half:]),
    float(np.abs(far.mean(0) - near.mean(0)).mean()),
    float(np.median(swag.std(0) / hmc.std(0))),
    found,
  )
