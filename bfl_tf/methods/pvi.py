"""Partitioned variational inference: a posterior that is prior times factors.

Notation, of each variational weight: eta the natural parameters (precision
times mean, precision); p the prior N(0, prior_scale^2), q the broadcast
posterior with mean m and precision l, t_k client k's factor, K the number of
clients of the run, r the damping; M_k the sum of client k's changes so far, S
the sum of all clients' changes.
  eta(t_k) = M_k + (eta(q) - eta(p) - S) / K
  The client's prior is the cavity q / t_k. Training gives m_k and l_k.
  The client sends the precision l' = l + r (l_k - l) and the mean
  m + r l_k (m_k - m) / l'.
  M_k <- M_k + eta(sent) - eta(q)      S <- S + sum_k (eta(sent) - eta(q))

The rule `dwc` multiplies q by the ratio of each client's new and old factor.
M_k and S start at 0 and are sums of the accepted changes after rounding. Other
changes of q are divided equally among all factors: initial scale, rounding,
weights that the rule guards or floors, and other server parts. So q is always
the product of the prior and all factors.

The clients of a round do not see each other's changes, so the sum of changes
may be too large. With damping 1 / (clients per round), every precision stays
positive. All clients per round give synchronous PVI. One client per round with
damping 1 gives sequential PVI. A single client with damping 1 gives variational
inference.

References:
  T. D. Bui et al. Partitioned variational inference: a unified framework
  encompassing federated and continual learning. arXiv:1811.11206, algorithm 1.
  M. Ashman et al. Partitioned variational inference: a framework for
  probabilistic federated learning. arXiv:2202.12275.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Natural, Sent, Start
from bfl_tf.server import pooling
from bfl_tf.startup import tf

# Lower bound on a cavity's precision, as a fraction of the prior's.
_MIN_CAVITY = 0.1


@dataclasses.dataclass(frozen=True)
class PVI(Local, pooling.DistributedWeightConsolidation):
  """The client keeps M_k; the server keeps S and sends it."""

  damping: float = setting(
    0.2, "Damping factor in (0, 1] on each client's update.", gt=0, le=1
  )

  name = 'pvi'
  exact = True

  def check(self, facts):
    facts.need_standard_objective()

  def memory(self, model):
    return np.zeros([2, model.loc.size])

  def factor(self, ctx, memory) -> tf.Tensor:
    """Returns eta(t_k), `[2, num_loc]`."""
    prior = tf.constant([[0.0], [self.run.prior_precision]], tf.float64)
    rest = weights.natural(ctx.broadcast) - prior - ctx.shared
    return memory + rest / self.run.num_clients

  def begin(self, ctx, memory):
    q = weights.natural(ctx.broadcast)
    shift, precision = tf.unstack(q - self.factor(ctx, memory))
    floor = tf.constant(_MIN_CAVITY * self.run.prior_precision, tf.float64)
    cavity = tf.maximum(precision, floor)
    # The floor must not change the prior's gradient at m.
    shift += (cavity - precision) * tf.cast(ctx.broadcast.loc, tf.float64)
    floored = tf.reduce_mean(tf.cast(cavity <= floor, tf.float32))
    return Start(ctx.start, (q, tf.stack([shift, cavity]), memory, floored))

  def prior(self, carry):
    return Natural(carry[1])

  def end(self, model, carry, trace):
    q, _, memory, floored = carry
    moved = self.damping * (weights.natural(model) - q)
    sent = weights.of_natural(q + moved, model)
    return Sent(
      sent,
      memory + (weights.natural(sent) - q),
      {'floored_fraction': floored},
    )

  def slot(self, model):
    return np.zeros([2, model.loc.size])

  def shared(self, slot):
    return slot

  def terms(self, update, weight, broadcast):
    change = weights.natural(update.model) - weights.natural(broadcast)
    rule = super().terms(update, weight, broadcast)
    return {**rule, 'change': change.numpy()}

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, None, ctx)
    return outcome._replace(slot=slot + sums['change'])


pvi = Method(
  (PVI(damping=0.1),),
  training.Flipout(prior_scale=1.0),
  tune={'pvi.damping': 'log:0.03:0.3'},
  help='Partitioned variational inference (Ashman et al. 2022) with Flipout '
  'clients. A damping of 1 / (clients per round) keeps every precision '
  'positive; it needs many rounds, such as 60.',
)

fedlap_cov = Method(
  (PVI(damping=0.1),),
  optimizer=training.Laplace(prior_scale=0.3),
  learning_rate=1e-3,
  tune={'pvi.damping': 'log:0.03:0.3'},
  help='FedLap-Cov (Swaroop et al. 2025): PVI with Laplace clients.',
)
