"""BayesADMM: the alternating direction method of multipliers on posteriors.

Notation, of each random weight: eta the natural parameters (precision times
mean, precision); p the prior N(0, prior_scale^2), q the broadcast posterior,
q_0 the first, v_k client k's dual, K all clients, rho the penalty, r the
damping.
  q_k = argmin N_k E_q[loss] / temperature + rho KL[q || exp(-v_k / rho) q]
  v_k <- v_k + r rho (eta(q_k) - eta(q))
  eta(q) <- (1 - a) mean_k eta(q_k) + a (eta(p) + sum_k v_k)
  a = 1 / (1 + K rho)

The duals begin at (eta(q_0) - eta(p)) / K: so q_0, which is narrower than p, is
prior times duals, too. A client keeps what its dual has moved since.

What a client weighs by rho is its prior: under r = rho = 1 it is partitioned
variational inference's cavity, and v_k its factor. Its precision may be
negative; IVON, by which clients fit, keeps that of q_k positive. All clients
are asked in every round: of fewer the paper says nothing. The mean is over
those that answered; a dual that was not heard of stays, on both sides.

References:
  T. Moellenhoff et al. Federated ADMM from Bayesian duality. ICLR 2026.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from bfl_tf import server, training, weights
from bfl_tf.config.settings import Setting
from bfl_tf.startup import tf
from bfl_tf.statistics import Total


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Keeps the dual; sends rho and r rho.

  Attributes:
    num_clients: Number of clients of the run.
    clients_per_round: all of them.
    prior_precision: Precision of the prior p.
  """

  num_clients: int
  clients_per_round: int
  prior_precision: float
  rho: Annotated[
    float,
    Setting(
      'Penalty rho: weight of the KL term to the broadcast posterior.', gt=0
    ),
  ] = 1.0
  damping: Annotated[
    float,
    Setting(
      'Damping factor in (0, 1] on each update of the dual variable.',
      gt=0,
      le=1,
    ),
  ] = 0.1

  name = 'bayes_admm'
  server_stage = 'bayes_admm'
  requires = {
    'client_optimizer': ('ivon',),
    'pooling': ('llp',),
    'weighting': ('equal',),
  }
  # It counts what it sends: nothing may change that on its way.
  incompatible_with = ('swag', 'attack')

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
    """Returns v_k, `[2, num_loc]`; its arguments are those of `prior`."""
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


def _told(update, weight, reference):
  told = update.extras[Part.name]
  moved = weights.natural(update.model) - weights.natural(reference)
  return {'dual': told[1] * moved.numpy(), 'told': told}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Adds the duals; the slot has eta(q_0) and `known`, eta(p) + sum_k v_k.

  Attributes:
    num_clients: Number of clients of the run.
  """

  num_clients: int

  name = 'bayes_admm'
  statistics = (Total(_told),)

  def init(self, model) -> dict[str, np.ndarray]:
    """Returns eta(q_0) twice, `[2, num_loc]` float64."""
    start = weights.natural(model).numpy()
    return {'start': start, 'known': start}

  def __call__(self, state, reference, pooled, statistics, seed):
    sums, slot = statistics[self.statistics[0]], state.slots[self.name]
    rho, _ = sums['told'] / sums['weight']
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
      slots={**state.slots, self.name: {**slot, 'known': known}},
    ), {}
