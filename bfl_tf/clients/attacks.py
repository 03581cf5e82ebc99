"""Attacks by malicious clients, to test rules and weightings.

An attack on a posterior changes the mean and keeps the trained covariance, so
that the malicious client appears as certain as the others.

References:
  M. Fang et al. Local model poisoning attacks to Byzantine-robust federated
    learning. USENIX Security 2020.
  P. Blanchard et al. Machine learning with adversaries: Byzantine tolerant
    gradient descent. NeurIPS 2017.
"""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from bfl_tf import seeds, weights
from bfl_tf.declare import component
from bfl_tf.declare.settings import setting


def malicious_clients(
  run_seed: int, num_clients: int, fraction: float
) -> frozenset[int]:
  """Returns the numbers of the malicious clients.

  They do not depend on the attack. A larger fraction includes the clients of a
  smaller one.
  """
  order = seeds.generator(run_seed, 'bad_clients').permutation(num_clients)
  return frozenset(order[: round(fraction * num_clients)].tolist())


@dataclasses.dataclass(frozen=True)
class Attack(component.Component):
  """Base of attacks: a fraction of the clients is malicious."""

  attack: ClassVar[bool] = True

  fraction: float = setting(
    0.2, 'Fraction of clients that are malicious.', ge=0, lt=1
  )

  def labels(self, y: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns the labels that a malicious client trains on.

    Args:
      y: Classes of all examples, `[num_examples]`.
    """
    return y

  def send(
    self,
    model: weights.Weights,
    start: weights.Weights,
    generator: np.random.Generator,
  ) -> weights.Weights:
    """Returns the model that a malicious client sends."""
    return model


@dataclasses.dataclass(frozen=True)
class LabelFlip(Attack):
  """Trains on labels C - 1 - c in place of c (Fang et al. 2020)."""

  name = 'label_flip'

  def labels(self, y, num_classes):
    return (num_classes - 1 - y).astype(y.dtype)


@dataclasses.dataclass(frozen=True)
class RandomModel(Attack):
  """Sends means drawn from N(0, scale^2), with new draws in each round."""

  scale: float = setting(1.0, 'Standard deviation of the random means.', gt=0)

  name = 'random_model'

  def send(self, model, start, generator):
    return model.replace_mean(
      self.scale * generator.standard_normal(model.mean.size)
    )


@dataclasses.dataclass(frozen=True)
class ScaledUpdate(Attack):
  """Sends start + factor (trained - start): a scaled or reversed update."""

  factor: float = setting(
    -5.0,
    'Factor on the update of the mean; a negative factor reverses it.',
    ge=-1e6,
  )

  name = 'scaled_update'

  def send(self, model, start, generator):
    before = start.mean.astype(np.float64)
    return model.replace_mean(before + self.factor * (model.mean - before))


ATTACKS: dict[str, Any] = {
  attack.name: attack for attack in (LabelFlip, RandomModel, ScaledUpdate)
}
