"""Server momentum: a heavy ball on the clients' mean update.

Notation: w the broadcast mean, m the mean of the model so far, v the velocity.
  v <- momentum v + (m - w)
  w <- w + v

References:
  T.-M. H. Hsu et al. Measuring the effects of non-identical data distribution
  for federated visual classification. arXiv:1909.06335 (FedAvgM).
"""

import dataclasses
from typing import ClassVar

import numpy as np


@dataclasses.dataclass(frozen=True)
class Momentum:
  """Moves the mean on; scales and buffers stay as they were pooled.

  Attributes:
    server_momentum: in [0, 1); 0 is the same as no momentum, bit for bit.
  """

  server_momentum: float = 0.9

  name: ClassVar[str] = 'momentum'
  statistics: ClassVar[tuple] = ()

  def __post_init__(self):
    if not 0 <= self.server_momentum < 1:
      raise ValueError(
        f'server_momentum must be in [0, 1), got {self.server_momentum!r}.'
      )

  def init(self, model) -> np.ndarray:
    """Returns the velocity, `[num_trainable]` float64, at rest."""
    return np.zeros(model.mean.size)

  def __call__(self, state, reference, pooled, statistics, seed):
    mean = state.model.mean.astype(np.float64)
    carried = self.server_momentum * state.slots[self.name]
    velocity = carried + (mean - reference.mean)
    # Adding a zero would turn a -0.0 around.
    moved = mean + carried if self.server_momentum else mean
    return state._replace(
      model=state.model.replace_mean(moved),
      slots={**state.slots, self.name: velocity},
    ), {'velocity_norm': float(np.linalg.norm(velocity))}
