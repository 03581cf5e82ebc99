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
from bfl_tf.methods.method import Method
from bfl_tf.parts import Outcome, Server


@dataclasses.dataclass(frozen=True)
class Momentum(Server):
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

  def slot(self, model):
    return np.zeros(model.mean.size)

  def step(self, model, sums, slot, ctx):
    mean = model.mean.astype(np.float64)
    update = mean - ctx.broadcast.mean
    carried = self.decay * slot
    if self.dampening and slot.any():
      carried = carried - self.dampening * update
    velocity = carried + update
    norm = float(np.linalg.norm(velocity))
    model = model.replace_mean(mean + carried)
    return Outcome(model, velocity, {'velocity_norm': norm})


fedavgm = Method(
  (Momentum(decay=0.9),),
  tune={'momentum.decay': 'uniform:0.3:0.95'},
  help='FedAvgM (Hsu et al. 2019): momentum on the server.',
)
