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

from bfl_tf import server, training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.startup import tf
from bfl_tf.statistics import Total


def _dual_terms(update, weight, reference):
  sent = update.extras[Part.name]
  moved = weights.natural(update.model) - weights.natural(reference)
  return {'dual': sent[1] * moved.numpy(), 'sent': sent}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Server stage that adds up the duals.

  Its slot contains `start`, eta(q_0), and `known`, eta(p) + sum_k v_k.
  """

  num_clients: int

  name = 'bayes_admm'
  statistics = (Total(_dual_terms),)

  def init(self, model) -> dict[str, np.ndarray]:
    """Returns eta(q_0) twice, `[2, num_loc]` float64."""
    start = weights.natural(model).numpy()
    return {'start': start, 'known': start}

  def shared(self, slot):
    return {'start': slot['start']}

  def __call__(self, state, reference, pooled, statistics, seed):
    sums, slot = statistics[self.statistics[0]], state.slots[self.name]
    rho, _ = sums['sent'] / sums['weight']
    known = slot['known'] + sums['dual']
    share = 1 / (1 + self.num_clients * rho)
    eta = (1 - share) * weights.natural(state.model).numpy() + share * known
    if eta[1].min() <= 0:
      raise ValueError(
        'a precision of the global posterior is negative: lower '
        '--bayes_admm.damping.'
      )
    model = weights.of_natural(eta, state.model)
    return state._replace(
      model=type(model)(*map(np.asarray, model)),
      slots={self.name: {**slot, 'known': known}},
    ), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that stores the dual and sends rho and r rho.

  Attributes:
    clients_per_round: Number of clients per round; must be all, or 0 for all.
  """

  num_clients: int
  clients_per_round: int
  prior_precision: float
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
  server_stage = Stage
  requires = {
    'client_optimizer': 'takes_any_prior',
    'pooling': 'averages_natural',
    'weighting': 'is_equal',
  }
  # The KL term of a client has the weight rho.
  standard_settings = ('kl_examples', 'kl_reduction', 'annealing_rounds')
  # Client and server update the dual alike: no part may change the update.
  incompatible_with = ('replaces_model', 'attack')

  def __post_init__(self):
    if self.clients_per_round not in (0, self.num_clients):
      raise ValueError(
        '--client_parts=bayes_admm needs all clients in every round: remove '
        f'--clients_per_round={self.clients_per_round}.'
      )

  @property
  def prior_weight(self) -> float:
    return self.rho

  def init_memory(self, model):
    return np.zeros([2, model.loc.size])

  def dual(self, shared, memory) -> tf.Tensor:
    """Returns v_k, `[2, num_loc]`; takes the arguments of `prior`."""
    prior = tf.constant([[0.0], [self.prior_precision]], tf.float64)
    return memory + (shared['start'] - prior) / self.num_clients

  def prior(self, start, shared, memory):
    return weights.natural(start) - self.dual(shared, memory) / self.rho

  def begin(self, start, shared, memory):
    return weights.natural(start), memory

  def finish(self, model, carry, trace):
    start, moved = carry
    step = self.damping * self.rho
    moved += step * (weights.natural(model) - start)
    return model, tf.constant([self.rho, step], tf.float64), moved

  def bounds(self, trace):
    sent = np.array([self.rho, self.damping * self.rho])
    return sent, sent


bayes_admm = Method(
  {
    'variant': 'deterministic',
    'client_optimizer': 'ivon',
    'client_learning_rate': 0.003,
    'ivon.initial_scale': 0.02,
    'ivon.prior_scale': 1,
    'ivon.temperature': 0.01,
    'client_parts': 'bayes_admm',
    'bayes_admm.rho': 0.2,
    'bayes_admm.damping': 0.1,
    'pooling': 'llp',
    'weighting': 'equal',
  },
  tune={
    'ivon.temperature': 'log:0.001:1',
    'bayes_admm.damping': 'log:0.1:1',
  },
  help='BayesADMM (Moellenhoff et al. 2026) with IVON clients. All clients '
  'take part in every round.',
)
