"""pFedBayes: a personal posterior of each client, and a global one.

Notation (Zhang et al. 2022, Eq. 6 and algorithm 1): q_k the personal posterior
of client k, w the global distribution, w_k the client's copy of it, zeta the
weight of the KL term, which is `--flipout.temperature`.
  q_k minimizes -E_q log p(D_k | theta) + zeta KL[q || w_k]
  w_k <- w_k - rate * gradient of KL[q_k || w_k], after each step of q_k
  w   <- the average of all w_k

q_k is the posterior that the client trains: it begins at the q_k of the
client's last round, in the first one at w. The client sends w_k. Deterministic
weights, such as gamma of normalizations, are averaged and not personal.

Deviations: the authors train w_k with Adam; here it takes plain gradient steps,
in mean and rho with scale = log(1 + exp(rho)). The rule `nwa` averages the
variances of w_k, not the parameters rho.

References:
  X. Zhang et al. Personalized federated learning via variational Bayesian
  inference. ICML 2022.
"""

import dataclasses

from bfl_tf import training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Normal, Sent, Start
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class PFedBayes(Local):
  """Trains the personal posterior, and sends the client's global one."""

  rate: float = setting(
    1e-3,
    "Learning rate of the client's copy of the global posterior; 0 keeps the "
    'broadcast.',
    ge=0,
  )

  name = 'pfedbayes'
  exact = True

  def check(self, facts):
    facts.need(facts.variant.is_variational, '--variant=flipout')

  def memory(self, model):
    return {'loc': model.loc, 'scale': model.scale}

  def begin(self, ctx, memory):
    w = ctx.broadcast
    carry = {'loc': w.loc, 'rho': weights.inverse_softplus(w.scale)}
    return Start(ctx.start._replace(**memory), carry)

  def prior(self, w):
    return Normal(w['loc'], tf.nn.softplus(w['rho']))

  def after(self, mean, w, step):
    loc, rho, scale = w['loc'], w['rho'], step.scale
    own = tf.nn.softplus(rho)
    distance = loc - mean[: tf.size(scale)]
    of_loc = distance / tf.square(own)
    spread = (tf.square(scale) + tf.square(distance)) / tf.square(own)
    of_rho = (1.0 - spread) / own * tf.sigmoid(rho)
    moved = {'loc': loc - self.rate * of_loc, 'rho': rho - self.rate * of_rho}
    return mean, moved

  def end(self, model, w, trace):
    sent = model._replace(loc=w['loc'], scale=tf.nn.softplus(w['rho']))
    return Sent(sent, self.memory(model))

  def personal(self, model, memory):
    return model._replace(**memory)


pfedbayes = Method(
  (PFedBayes(rate=1e-3),),
  training.Flipout(initial_scale=0.05, temperature=1.0),
  tune={'flipout.temperature': 'log:0.001:1'},
  help=__doc__,
)
