"""Server momentum: heavy-ball momentum on the clients' mean update.

Notation: w the broadcast mean, m the mean of the model so far, v the velocity.
  v <- momentum v + (1 - dampening) (m - w)
  w <- w + v

With dampening = momentum, v is an exponential average that starts with the full
first update. FedBE's published code does the same, but restarts the average at
the second update.

References:
  T.-M. H. Hsu et al. Measuring the effects of non-identical data distribution
  for federated visual classification. arXiv:1909.06335 (FedAvgM).
"""

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True)
class Momentum(Stage):
  """Updates the mean; scales and buffers stay as pooled.

  Without momentum and dampening, the result is bit-for-bit the pooled model.
  """

  decay: float = setting(
    0.9, 'Momentum coefficient: decay rate of the velocity.', ge=0, lt=1
  )
  dampening: float = setting(
    0.0, 'Factor 1 - dampening on each update, except the first.', ge=0, lt=1
  )

  name = 'momentum'

  def init(self, model) -> np.ndarray:
    """Returns the initial velocity 0, `[num_trainable]` float64."""
    return np.zeros(model.mean.size)

  def __call__(self, state, reference, pooled, statistics, seed):
    mean = state.model.mean.astype(np.float64)
    before, update = state.slots[self.name], mean - reference.mean
    carried = self.decay * before
    if self.dampening and before.any():
      carried = carried - self.dampening * update
    velocity = carried + update
    return state._replace(
      model=state.model.replace_mean(mean + carried),
      slots={self.name: velocity},
    ), {'velocity_norm': float(np.linalg.norm(velocity))}
