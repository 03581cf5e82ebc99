"""The negative evidence lower bound of a client, per example.

Notation (pooling paper, Eq. 6): mean over the batch of -log p(y | x, theta)
plus T KL[q(theta) || p(theta)] / N_k, N_k the client's own number of examples.
Extensions of the paper: N_k may be N, the examples of all clients; the
temperature T may differ from 1; and other reductions of the KL are available
(docs/prior.md).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from bfl_tf.declare.settings import Setting, setting
from bfl_tf.models import variants
from bfl_tf.startup import tf

PRIOR_SCALE = Setting(
  'Standard deviation of the prior N(0, prior_scale^2).', gt=0
)
INITIAL_SCALE = Setting(
  'Standard deviation of the weights before the first round.', gt=0
)
KL_EXAMPLES = ('own', 'all')
KL_REDUCTIONS = ('sum', 'mean', 'tied')


@dataclasses.dataclass(frozen=True)
class Objective:
  """Prior and weight of the KL term in a client's objective.

  Variants and optimizers that fit a posterior inherit these settings.
  """

  prior_scale: float = setting(10.0, PRIOR_SCALE)
  update_prior: bool = setting(
    False, 'Use the broadcast posterior as the prior in every round.'
  )
  kl_examples: str = setting(
    'own',
    "Number of examples that the KL term is divided by: the client's own, "
    'KL / N_k, or those of all clients, KL / N.',
    choices=KL_EXAMPLES,
  )
  temperature: float = setting(
    1.0, 'Factor on the KL term; 1 is Bayesian inference.', gt=0
  )

  # Only variational layers have other values.
  kl_reduction = 'sum'
  max_scale = 0.0

  def kl_weight(self, round_index: int) -> np.float32:
    """Returns the KL weight in a round."""
    return np.float32(self.temperature)

  def other_examples(self, own: int, total: int) -> int:
    """Returns the number of other clients' examples in the KL's divisor."""
    return total - own if self.kl_examples == 'all' else 0

  def compiled(self) -> Objective:
    """Returns the settings in the compiled graph; others are its inputs."""
    return Objective(
      prior_scale=self.prior_scale, update_prior=self.update_prior
    )

  def standard(self) -> Objective:
    """Returns the objective with the paper's term KL / N_k."""
    return dataclasses.replace(self, kl_examples='own', temperature=1.0)


@dataclasses.dataclass(frozen=True)
class LayerObjective(Objective):
  """Objective of variational layers, with other forms of the KL term."""

  kl_reduction: str = setting(
    'sum',
    'Reduction of the KL term over weights: their sum, the mean over the '
    'weights of each kernel or bias, or the sum with the mean of the prior '
    'tied to the mean of the posterior.',
    choices=KL_REDUCTIONS,
  )
  annealing_rounds: int = setting(
    0,
    'Number of rounds over which the weight of the KL term grows linearly to '
    '1; 0 for weight 1 from the first round.',
    ge=0,
  )
  max_scale: float = setting(
    0.0,
    'Largest standard deviation of a weight during training; 0 for no bound.',
    ge=0,
  )

  def kl_weight(self, round_index):
    rounds = self.annealing_rounds
    annealed = min(1.0, (round_index + 1) / rounds) if rounds else 1.0
    return np.float32(self.temperature) * np.float32(annealed)

  def compiled(self):
    return LayerObjective(
      prior_scale=self.prior_scale,
      update_prior=self.update_prior,
      kl_reduction=self.kl_reduction,
      max_scale=self.max_scale,
    )

  def standard(self):
    return dataclasses.replace(
      self,
      kl_examples='own',
      temperature=1.0,
      kl_reduction='sum',
      annealing_rounds=0,
    )


@dataclasses.dataclass(frozen=True)
class Flipout(variants.Flipout, LayerObjective):
  """Variational inference with Flipout (Wen et al. 2018), Gaussian prior."""


# Variants by name, with the settings of their objective.
VARIANTS = variants.VARIANTS | {'flipout': Flipout}


class Prior(NamedTuple):
  """N(loc, scale^2) per variational weight: `[num_loc]` or scalars."""

  loc: tf.Tensor
  scale: tf.Tensor


def divergence(
  loc: tf.Tensor,
  scale: tf.Tensor,
  prior: Prior,
  shares: tf.Tensor | None = None,
) -> tf.Tensor:
  """Returns KL[N(loc, scale^2) || prior] in nats, summed over the weights.

  Args:
    shares: `[num_loc]`, factors on the weights' divergences; None for 1.
  """
  # A division or a power costs ten times as much as a product or `tf.square`.
  inverse = 1.0 / prior.scale
  ratio, distance = scale * inverse, (loc - prior.loc) * inverse
  each = 0.5 * (tf.square(ratio) + tf.square(distance) - 1.0)
  each -= tf.math.log(ratio)
  return tf.reduce_sum(each if shares is None else each * shares)
