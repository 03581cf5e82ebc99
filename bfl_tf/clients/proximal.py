"""FedProx: stay near the broadcast model.

Adds mu/2 |mean - start|^2 to a client's loss.

References:
  T. Li et al. Federated optimization in heterogeneous networks. MLSys 2020.
"""

import dataclasses
from typing import ClassVar

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Proximal:
  """The proximal term as a client part.

  Attributes:
    proximal_weight: mu.
  """

  proximal_weight: float = 0.01

  name: ClassVar[str] = 'proximal'
  needs: ClassVar[str | None] = None

  def __post_init__(self):
    if not self.proximal_weight >= 0:
      raise ValueError(
        f'proximal_weight must be at least 0, got {self.proximal_weight!r}.'
      )

  def begin(self, start, shared, memory):
    """Carries the mean that the client starts from."""
    return tf.concat([start.loc, start.point], 0)

  def loss(self, mean, carry):
    """The proximal term, in nats."""
    return 0.5 * self.proximal_weight * tf.reduce_sum(tf.square(mean - carry))
