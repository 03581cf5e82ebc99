"""FedLap: Laplace approximations of clients, combined by dual variables.

Notation: l_k is client k's mean loss over its N_k examples, w_g the broadcast
mean, w_k the trained mean, delta the precision of the prior N(0, 1 / delta).
  w_k minimizes N_k l_k(w) + delta v_k'w + delta/2 |w - w_g|^2
  v_k <- v_k + rho (w_k - w_g)
  w_g <- sum_k v_k                                 over all clients

The fixed point minimizes sum_k N_k l_k(w) + delta/2 |w|^2. K is the number of
clients and w_0 the first broadcast. Each v_k starts at w_0 / K, so that w_g =
sum_k v_k holds from the start. A client keeps the change of its v_k. With rho =
1 / K, w_g of the second round is the mean of the first w_k.

The published code penalizes |w - w_g| without the square, and starts with v_k =
0 and with 0 for w_g in the first local training. The square of the paper is
implemented here.

References:
  S. Swaroop et al. Connecting federated ADMM to Bayes. ICLR 2025, section 3.
"""

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.server import pooling
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class FedLap(Local, pooling.NaiveWeightedAverage):
  """The client keeps the change of v_k; the server keeps w_0 and sum_k v_k."""

  delta: float = setting(1.0, 'Precision delta of the Gaussian prior.', gt=0)
  damping: float = setting(
    0.1,
    'Step size rho of the dual variables; 1 / (number of clients) or less.',
    gt=0,
    le=1,
  )

  name = 'fedlap'
  exact = True

  def check(self, facts):
    # A client's posterior would contain another prior.
    facts.need(facts.variant.is_point, '--variant=deterministic')
    facts.need(facts.optimizer.minimizes, '--client_optimizer=sgd or adam')

  def memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, ctx, memory):
    first = tf.cast(ctx.shared / self.run.num_clients, tf.float32)
    return Start(ctx.start, (ctx.broadcast.mean, memory, first + memory))

  def gradient(self, gradient, mean, carry, step):
    w_g, _, dual = carry
    return gradient + self.delta / step.num_examples * (dual + mean - w_g)

  def end(self, model, carry, trace):
    w_g, moved, _ = carry
    return Sent(model, moved + self.damping * (model.mean - w_g))

  def slot(self, model):
    start = model.mean.astype(np.float64)
    return {'start': start, 'duals': start}

  def shared(self, slot):
    return slot['start']

  def terms(self, update, weight, broadcast):
    moved = update.model.mean.astype(np.float64) - broadcast.mean
    return {**super().terms(update, weight, broadcast), 'moved': moved}

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, None, ctx)
    duals = slot['duals'] + self.damping * sums['moved']
    return outcome._replace(
      model=outcome.model.replace_mean(duals), slot={**slot, 'duals': duals}
    )


fedlap = Method(
  (FedLap(delta=10.0, damping=0.1),),
  tune={'fedlap.delta': 'log:1:100'},
  help='FedLap (Swaroop et al. 2025): ADMM on Laplace posteriors with a fixed '
  'scale.',
)
