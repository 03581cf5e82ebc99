"""FedNova: averaging of updates normalized by the length of local training.

Notation: x the broadcast mean, y_k the client's trained mean, p_k its share of
the client weights, rho the momentum. The server knows the rates of all steps,
and computes a_k itself.
  v <- rho v + 1; a_k <- a_k + rate v     at each step, both from 0
  d_k = (y_k - x) / a_k                   the normalized update
  x <- x + tau sum_k p_k d_k              tau = sum_k p_k a_k, Eq. 6 and 9

At a constant rate, a_k is the rate times the paper's ||a_k||_1, which is
(t - rho (1 - rho^t) / (1 - rho)) / (1 - rho) after t steps. Equal a_k of all
clients give FedAvg's mean. a_k counts only SGD's own steps, not the changes by
other parts (`proximal`).

References:
  J. Wang et al. Tackling the objective inconsistency problem in heterogeneous
  federated optimization. NeurIPS 2020, sections 4 and 5.
"""

import dataclasses

import numpy as np

from bfl_tf import training
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class FedNova(Local, pooling.NaiveWeightedAverage):
  """The clients train as without it; the server sets the mean."""

  name = 'fednova'
  exact = True

  def check(self, facts):
    facts.need_sgd()

  def length(self, rates: np.ndarray) -> float:
    """Returns a_k, the displacement by a constant gradient of 1."""
    sgd = self.run.optimizer
    past = np.arange(1, len(rates) + 1) + sgd.nesterov
    return float(np.sum(rates * (1 - sgd.momentum**past) / (1 - sgd.momentum)))

  def terms(self, update, weight, broadcast):
    length = self.length(update.rates)
    moved = update.model.mean.astype(np.float64) - broadcast.mean
    return {
      **super().terms(update, weight, broadcast),
      'length': weight * length,
      'moved': moved * (weight / length),
    }

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, slot, ctx)
    length, moved = (sums[k] / sums['weight'] for k in ('length', 'moved'))
    mean = ctx.broadcast.mean + length * moved
    return outcome._replace(model=outcome.model.replace_mean(mean))


fednova = Method(
  (FedNova(),),
  optimizer=training.SGD(momentum=0.9),
  learning_rate=0.05,
  help="FedNova (Wang et al. 2020): normalizes updates by the clients' numbers "
  'of steps.',
)
