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

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import server, training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.startup import tf
from bfl_tf.statistics import Total


def _changes(update, weight, reference):
  moved = update.model.mean.astype(np.float64) - reference.mean
  return {'duals': update.extras[Part.name] * moved}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Replaces the pooled mean by the sum of the dual variables."""

  name = 'fedlap'
  sets_mean = True
  statistics = (Total(_changes),)

  def init(self, model) -> dict[str, np.ndarray]:
    """Returns w_0 and the sum of the duals, `[num_trainable]` float64."""
    start = model.mean.astype(np.float64)
    return {'start': start, 'duals': start}

  def shared(self, slot):
    return {'start': slot['start']}

  def __call__(self, state, reference, pooled, statistics, seed):
    slot = state.slots[self.name]
    duals = slot['duals'] + statistics[self.statistics[0]]['duals']
    return state._replace(
      model=state.model.replace_mean(duals),
      slots={self.name: {**slot, 'duals': duals}},
    ), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Regularizes the loss; keeps v_k's change, `[num_trainable]` float32."""

  num_clients: int
  delta: float = setting(1.0, 'Precision delta of the Gaussian prior.', gt=0)
  damping: float = setting(
    0.1,
    'Step size rho of the dual variables; 1 / (number of clients) or less.',
    gt=0,
    le=1,
  )

  name = 'fedlap'
  server_stage = Stage
  # A client's posterior would contain another prior.
  requires = {
    'variant': 'is_point',
    'client_optimizer': 'minimizes',
    'pooling': 'averages_means',
  }
  # The client and the server compute the same change of the mean.
  incompatible_with = ('changes_start', 'replaces_model', 'attack')

  def init_memory(self, model):
    return np.zeros(model.mean.size, np.float32)

  def begin(self, start, shared, memory):
    first = tf.cast(shared['start'] / self.num_clients, tf.float32)
    return start.mean, memory, first + memory

  def gradient(self, gradient, mean, carry, step):
    start, _, dual = carry
    return gradient + self.delta / step.num_examples * (dual + mean - start)

  def finish(self, model, carry, trace):
    start, moved, _ = carry
    change = self.damping * (model.mean - start)
    return model, tf.constant([self.damping], tf.float32), moved + change

  def bounds(self, trace):
    return np.float32(self.damping), np.float32(self.damping)


fedlap = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'fedlap',
    'fedlap.delta': 10,
    'fedlap.damping': 0.1,
    'pooling': 'nwa',
  },
  tune={'fedlap.delta': 'log:1:100'},
  help='FedLap (Swaroop et al. 2025): ADMM on Laplace posteriors with a fixed '
  'scale.',
)

fedlap_cov = Method(
  {
    'variant': 'deterministic',
    'client_optimizer': 'laplace',
    'client_learning_rate': 0.001,
    'laplace.prior_scale': 0.3,
    'client_parts': 'pvi',
    'pvi.damping': 0.1,
    'pooling': 'dwc',
  },
  tune={'pvi.damping': 'log:0.03:0.3'},
  help='FedLap-Cov (Swaroop et al. 2025): PVI with Laplace clients.',
)
