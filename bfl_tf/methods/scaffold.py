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

from collections.abc import Mapping
import dataclasses

import numpy as np

from bfl_tf import server, training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.statistics import Total

CORRECTS = ('gradients', 'weights')


def _drift(update, weight, reference):
  moved = reference.mean.astype(np.float64) - update.model.mean
  return {'drift': moved * (weight / update.trace.sum_rates), 'updates': 1.0}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Server stage that updates the server's control variate and broadcasts it.

  Attributes:
    num_clients: Number of clients of the run, including those that are not
      sampled.
  """

  num_clients: int

  name = 'scaffold'
  statistics = (Total(_drift),)

  def init(self, model) -> dict[str, np.ndarray]:
    """Returns c = 0, `[num_trainable]` float32, and w = 0 of 0 updates."""
    control = np.zeros(model.mean.size, np.float32)
    return {'control': control, 'weight': np.zeros(()), 'updates': np.zeros(())}

  def shared(self, slot):
    return {'control': slot['control']}

  def __call__(self, state, reference, pooled, statistics, seed):
    sums, slot = statistics[self.statistics[0]], state.slots[self.name]
    updates = slot['updates'] + sums['updates']
    weight = (slot['weight'] * slot['updates'] + sums['weight']) / updates
    change = sums['drift'] - sums['weight'] * slot['control']
    change /= self.num_clients
    control = (slot['control'] * slot['weight'] + change) / weight
    slot = {
      'control': control.astype(np.float32),
      'weight': weight,
      'updates': updates,
    }
    return state._replace(slots={self.name: slot}), {
      'control_norm': float(np.linalg.norm(control))
    }


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that corrects each step and stores the control variate."""

  corrects: str = setting(
    'gradients',
    'Quantity that the control variates correct: gradients as in the '
    'paper, or weights, which also works with momentum.',
    choices=CORRECTS,
  )

  name = 'scaffold'
  server_stage = Stage
  # With these parts x - y_i is not the sum of SGD's steps.
  incompatible_with = ('changes_start', 'replaces_model')

  @property
  def requires(self) -> Mapping[str, str]:
    """SGD and constant client weights; no momentum if gradients are corrected.

    Otherwise the control variates would contain momentum, but the corrected
    gradients would not.
    """
    of_sgd = 'is_plain_sgd' if self.corrects == 'gradients' else 'is_sgd'
    return {'client_optimizer': of_sgd, 'weighting': 'is_constant'}

  def init_memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, start, shared, memory):
    return start.mean, shared['control'], memory

  def gradient(self, gradient, mean, carry, step):
    if self.corrects == 'weights':
      return gradient
    _, server_control, control = carry
    return gradient - control + server_control

  def after_step(self, mean, carry, step):
    if self.corrects == 'gradients':
      return None, carry
    _, server_control, control = carry
    return mean - step.learning_rate * (server_control - control), carry

  def finish(self, model, carry, trace):
    start, server_control, control = carry
    drift = (start - model.mean) / trace.sum_rates
    return model, None, control - server_control + drift


scaffold = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'scaffold',
    'scaffold.corrects': 'weights',
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.05,
    'sgd.momentum': 0.9,
    'pooling': 'nwa',
  },
  help='SCAFFOLD (Karimireddy et al. 2020): control variates correct each '
  "client's drift. The weights are corrected after each step, so that "
  'optimizers with momentum work.',
)
