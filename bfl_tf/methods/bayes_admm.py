"""BayesADMM: the alternating direction method of multipliers on posteriors.

Notation, of each random weight: eta the natural parameters (precision times
mean, precision); p the prior N(0, prior_scale^2), q the broadcast posterior,
q_0 the first, v_k client k's dual, K all clients, rho the penalty, r the
damping.
  q_k = argmin N_k E_q[loss] / temperature + rho KL[q || exp(-v_k / rho) q]
  v_k <- v_k + r rho (eta(q_k) - eta(q))
  eta(q) <- (1 - a) mean_k eta(q_k) + a (eta(p) + sum_k v_k)
  a = 1 / (1 + K rho)

The duals start at (eta(q_0) - eta(p)) / K, so that q_0, which is narrower than
p, is also prior times duals. A client stores the change of its dual since then.

The distribution exp(-v_k / rho) q is the client's prior. With r = rho = 1 it is
the cavity of partitioned variational inference, and v_k is the factor. Its
precision may be negative, but IVON keeps the precision of q_k positive. Every
round needs all clients: the paper defines no partial participation. The mean is
over the clients that replied. Without a reply, a dual does not change.

References:
  T. Moellenhoff et al. Federated ADMM from Bayesian duality. ICLR 2026.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import parts, training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Natural, Sent, Start
from bfl_tf.server import pooling
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class BayesADMM(Local, pooling.LogLinearPooling):
  """The client keeps its dual; the server eta(q_0), and eta(p) + sum_k v_k."""

  rho: float = setting(
    1.0, 'Penalty rho: weight of the KL term to the broadcast posterior.', gt=0
  )
  damping: float = setting(
    0.1,
    'Damping factor in (0, 1] on each update of the dual variable.',
    gt=0,
    le=1,
  )

  name = 'bayes_admm'
  # Client and server update the dual alike: no part may change the update.
  exact = True

  def check(self, facts):
    facts.need(facts.optimizer.takes_any_prior, '--client_optimizer=ivon')
    facts.need(facts.weighting.is_equal, '--weighting=equal')
    facts.need(
      self.run.clients_per_round in (0, self.run.num_clients),
      'all clients in every round: remove --clients_per_round',
    )
    # The KL term of a client has the weight rho.
    facts.need_standard_objective('kl_examples')

  def memory(self, model):
    return np.zeros([2, model.loc.size])

  def dual(self, ctx, memory) -> tf.Tensor:
    """Returns v_k, `[2, num_loc]`."""
    prior = tf.constant([[0.0], [self.run.prior_precision]], tf.float64)
    return memory + (ctx.shared - prior) / self.run.num_clients

  def begin(self, ctx, memory):
    q = weights.natural(ctx.broadcast)
    eta = q - self.dual(ctx, memory) / self.rho
    return Start(ctx.start, (q, eta, memory))

  def prior(self, carry):
    return Natural(carry[1], self.rho)

  def end(self, model, carry, trace):
    q, _, moved = carry
    step = self.damping * self.rho
    return Sent(model, moved + step * (weights.natural(model) - q))

  def slot(self, model):
    start = weights.natural(model).numpy()
    return {'start': start, 'known': start}

  def shared(self, slot):
    return slot['start']

  def terms(self, update, weight, broadcast):
    moved = weights.natural(update.model) - weights.natural(broadcast)
    rule = super().terms(update, weight, broadcast)
    return {**rule, 'moved': moved.numpy()}

  def step(self, model, sums, slot, ctx):
    outcome = super().step(model, sums, None, ctx)
    known = slot['known'] + self.damping * self.rho * sums['moved']
    share = 1 / (1 + self.run.num_clients * self.rho)
    mean = weights.natural(outcome.model).numpy()
    eta = (1 - share) * mean + share * known
    if eta[1].min() <= 0:
      raise ValueError(
        'a precision of the global posterior is negative: lower '
        '--bayes_admm.damping.'
      )
    model = parts.numpy(weights.of_natural(eta, outcome.model))
    return outcome._replace(model=model, slot={**slot, 'known': known})


bayes_admm = Method(
  (BayesADMM(rho=0.2, damping=0.1),),
  optimizer=training.IVON(
    initial_scale=0.02, prior_scale=1.0, temperature=0.01
  ),
  learning_rate=0.003,
  weighting=pooling.Equal(),
  tune={
    'ivon.temperature': 'log:0.001:1',
    'bayes_admm.damping': 'log:0.1:1',
  },
  help='BayesADMM (Moellenhoff et al. 2026) with IVON clients. All clients '
  'take part in every round.',
)
