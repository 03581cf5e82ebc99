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

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import server, training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.statistics import Total


def _moved(update, weight, reference):
  moved = update.model.mean.astype(np.float64) - reference.mean
  return {'moved': weight * moved, 'updates': 1.0}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Adds s to the pooled mean.

  Attributes:
    num_clients: Number of clients of the run, including those that are not
      sampled.
  """

  num_clients: int

  name = 'feddyn'
  sets_mean = True
  statistics = (Total(_moved),)

  def init(self, model) -> dict[str, np.ndarray]:
    """Returns the sums over all updates: changes, weights and their number."""
    zero = np.zeros(())
    return {'moved': np.zeros(model.mean.size), 'weight': zero, 'updates': zero}

  def shared(self, slot):
    return {}

  def __call__(self, state, reference, pooled, statistics, seed):
    sums, slot = statistics[self.statistics[0]], state.slots[self.name]
    slot = {key: np.asarray(slot[key] + sums[key]) for key in slot}
    total_weight = self.num_clients * slot['weight'] / slot['updates']
    model = state.model.replace_mean(
      state.model.mean + slot['moved'] / total_weight
    )
    return state._replace(model=model, slots={self.name: slot}), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Regularizes the loss; keeps g_k, `[num_trainable]` float32."""

  alpha: float = setting(0.01, 'Coefficient alpha of the regularization.', gt=0)

  name = 'feddyn'
  server_stage = Stage
  requires = {'pooling': 'averages_means', 'weighting': 'is_constant'}
  # The client and the server compute the same change of the mean.
  incompatible_with = ('changes_start', 'replaces_model', 'attack')

  def init_memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, start, shared, memory):
    return start.mean, memory

  def gradient(self, gradient, mean, carry, step):
    start, kept = carry
    return gradient - kept + self.alpha * (mean - start)

  def finish(self, model, carry, trace):
    start, kept = carry
    return model, None, kept - self.alpha * (model.mean - start)


feddyn = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'feddyn',
    'feddyn.alpha': 0.1,
    'pooling': 'nwa',
  },
  tune={'feddyn.alpha': 'log:0.001:1'},
  help='FedDyn (Acar et al. 2021): dynamic regularization.',
)
