"""FedDyn: dynamic regularization of the clients' losses.

Notation: f_k is client k's mean loss, w_g the broadcast mean, w_k the trained
mean, p_k client k's weight divided by the sum of the weights of all clients.
  w_k minimizes f_k(w) - g_k'w + alpha/2 |w - w_g|^2
  g_k <- g_k - alpha (w_k - w_g)                   kept by the client
  s <- s + sum_k p_k (w_k - w_g)                   over the round's clients
  w_g <- weighted mean of the round's w_k, plus s

s is the paper's -h / alpha. The paper weights clients equally. Here p_k follows
`--weighting`, so that the fixed point minimizes sum_k p_k f_k, as in the
published code. The server estimates the sum of all weights by the number of
clients times the mean weight of all updates so far.

References:
  D. A. E. Acar et al. Federated learning based on dynamic regularization. ICLR
  2021, algorithm 1.
"""

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class FedDyn(Local, pooling.NaiveWeightedAverage):
  """The client keeps g_k; the server keeps the sums over all updates."""

  alpha: float = setting(0.01, 'Coefficient alpha of the regularization.', gt=0)

  name = 'feddyn'
  exact = True

  def check(self, facts):
    facts.need_constant_weights()

  def memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, ctx, memory):
    return Start(ctx.start, (ctx.broadcast.mean, memory))

  def gradient(self, gradient, mean, carry, step):
    w_g, g_k = carry
    return gradient - g_k + self.alpha * (mean - w_g)

  def end(self, model, carry, trace):
    w_g, g_k = carry
    return Sent(model, g_k - self.alpha * (model.mean - w_g))

  def slot(self, model):
    zero = np.zeros(())
    return {'moved': np.zeros(model.mean.size), 'weight': zero, 'updates': zero}

  def terms(self, update, weight, broadcast):
    moved = update.model.mean.astype(np.float64) - broadcast.mean
    rule = super().terms(update, weight, broadcast)
    return {**rule, 'moved': weight * moved}

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, None, ctx)
    new = {'moved': sums['moved'], 'weight': sums['weight'],
           'updates': sums['count']}  # fmt: skip
    slot = {key: np.asarray(slot[key] + new[key]) for key in slot}
    total_weight = self.run.num_clients * slot['weight'] / slot['updates']
    mean = outcome.model.mean + slot['moved'] / total_weight
    return outcome._replace(model=outcome.model.replace_mean(mean), slot=slot)


feddyn = Method(
  (FedDyn(alpha=0.1),),
  tune={'feddyn.alpha': 'log:0.001:1'},
  help='FedDyn (Acar et al. 2021): dynamic regularization.',
)
