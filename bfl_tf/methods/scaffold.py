"""SCAFFOLD: control variates against client drift.

Notation: x the broadcast mean, y_i the client's trained mean, c and c_i the
server's and the client's control variates, R the sum of a round's rates, w_i
the client's weight, w the mean weight over all updates so far, N all clients.
  g <- g - c_i + c                          at each step
  c_i <- c_i - c + (x - y_i) / R            option II, kept by the client
  c <- sum_i w_i c_i / (N w)                the server computes each change

At a fixed point c_i is g_i, so each client's step is c and must be 0. Hence c
needs the client weights of the model average; the paper's are equal. If w were
the mean of one round, c would change with the sampled clients.

(x - y_i) / R is the mean gradient only for SGD without momentum. Public code
(NIID-Bench, Flower's baseline) corrects the weights after each step instead:
y <- y - rate (c - c_i). This allows momentum, because c and c_i contain it like
the steps. While the momentum builds up, the correction is too large, so the
optimum is only approximately a fixed point.

References:
  S. P. Karimireddy et al. SCAFFOLD: Stochastic controlled averaging for
  federated learning. ICML 2020, algorithm 1.
"""

import dataclasses

import numpy as np

from bfl_tf import training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Outcome, Sent, Server, Start

CORRECTS = ('gradients', 'weights')


@dataclasses.dataclass(frozen=True)
class Scaffold(Local, Server):
  """The client keeps c_i; the server keeps c and w, and sends c."""

  corrects: str = setting(
    'gradients',
    'Quantity that the control variates correct: gradients as in the '
    'paper, or weights, which also works with momentum.',
    choices=CORRECTS,
  )

  name = 'scaffold'
  exact = True

  def check(self, facts):
    facts.need_constant_weights()
    # Control variates would contain momentum, but corrected gradients not.
    if self.corrects == 'gradients':
      facts.need_plain_sgd()
    facts.need_sgd()

  def memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, ctx, memory):
    return Start(ctx.start, (ctx.broadcast.mean, ctx.shared, memory))

  def gradient(self, gradient, mean, carry, step):
    if self.corrects == 'weights':
      return gradient
    _, c, own = carry
    return gradient - own + c

  def after(self, mean, carry, step):
    if self.corrects == 'gradients':
      return mean, carry
    _, c, own = carry
    return mean - step.learning_rate * (c - own), carry

  def end(self, model, carry, trace):
    x, c, own = carry
    drift = (x - model.mean) / trace.sum_rates
    return Sent(model, own - c + drift)

  def slot(self, model):
    control = np.zeros(model.mean.size, np.float32)
    return {'control': control, 'weight': np.zeros(()), 'updates': np.zeros(())}

  def shared(self, slot):
    return slot['control']

  def terms(self, update, weight, broadcast):
    moved = broadcast.mean.astype(np.float64) - update.model.mean
    return {'drift': moved * (weight / update.trace.sum_rates)}

  def step(self, model, sums, slot, ctx):
    updates = slot['updates'] + sums['count']
    weight = (slot['weight'] * slot['updates'] + sums['weight']) / updates
    change = sums['drift'] - sums['weight'] * slot['control']
    change /= self.run.num_clients
    control = (slot['control'] * slot['weight'] + change) / weight
    slot = {
      'control': control.astype(np.float32),
      'weight': weight,
      'updates': updates,
    }
    norm = float(np.linalg.norm(control))
    return Outcome(model, slot, {'control_norm': norm})


scaffold = Method(
  (Scaffold(corrects='weights'),),
  optimizer=training.SGD(momentum=0.9),
  learning_rate=0.05,
  help='SCAFFOLD (Karimireddy et al. 2020): control variates correct each '
  "client's drift. The weights are corrected after each step, so that "
  'optimizers with momentum work.',
)
