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
lower bounds of the rule, and server stages. So q is always the product of the
prior and all factors.

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

from bfl_tf import server, training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.startup import tf
from bfl_tf.statistics import Total

# Lower bound on a cavity's precision, as a fraction of the prior's.
_MIN_CAVITY = 0.1


def _changed(update, weight, reference):
  change = weights.natural(update.model) - weights.natural(reference)
  return {'change': change.numpy()}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Server stage that sums the clients' changes and broadcasts the sum S."""

  name = 'pvi'
  statistics = (Total(_changed),)

  def init(self, model) -> np.ndarray:
    """Returns S = 0, `[2, num_loc]` float64."""
    return np.zeros([2, model.loc.size])

  def __call__(self, state, reference, pooled, statistics, seed):
    change = statistics[self.statistics[0]]['change']
    slots = {self.name: state.slots[self.name] + change}
    return state._replace(slots=slots), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that uses the cavity as prior and stores the sent changes.

  Attributes:
    num_clients: Number of clients of the run, including those that are not
      sampled.
    damping: Damping r of the client's update.
  """

  num_clients: int
  prior_precision: float
  damping: float = setting(
    0.2, "Damping factor in (0, 1] on each client's update.", gt=0, le=1
  )

  name = 'pvi'
  server_stage = Stage
  requires = {'pooling': 'needs_prior'}
  # Client and server sum the same changes: no part may change the update.
  incompatible_with = ('replaces_model', 'attack')

  def for_one_site(self) -> Part:
    return dataclasses.replace(self, damping=1.0)

  def init_memory(self, model):
    return np.zeros([2, model.loc.size])

  def factor(self, start, shared, memory) -> tf.Tensor:
    """Returns eta(t_k), `[2, num_loc]`; takes the arguments of `prior`."""
    prior = tf.constant([[0.0], [self.prior_precision]], tf.float64)
    rest = weights.natural(start) - prior - shared
    return memory + rest / self.num_clients

  def _cavity(self, start, shared, memory):
    """Returns eta of the cavity, and a mask of precisions at the floor."""
    cavity = weights.natural(start) - self.factor(start, shared, memory)
    shift, precision = tf.unstack(cavity)
    floor = tf.constant(_MIN_CAVITY * self.prior_precision, tf.float64)
    held = tf.maximum(precision, floor)
    # The floor must not change the prior's gradient at m.
    shift += (held - precision) * tf.cast(start.loc, tf.float64)
    return tf.stack([shift, held]), held <= floor

  def prior(self, start, shared, memory):
    return self._cavity(start, shared, memory)[0]

  def begin(self, start, shared, memory):
    _, floored = self._cavity(start, shared, memory)
    floored = tf.reduce_mean(tf.cast(floored, tf.float32))
    return weights.natural(start), memory, floored

  def finish(self, model, carry, trace):
    before, memory, _ = carry
    moved = self.damping * (weights.natural(model) - before)
    sent = weights.of_natural(before + moved, model)
    return sent, None, memory + (weights.natural(sent) - before)

  def report(self, carry, trace):
    *_, floored = carry
    return {'floored_fraction': floored}


pvi = Method(
  {
    'variant': 'flipout',
    'flipout.prior_scale': 1,
    'client_parts': 'pvi',
    'pvi.damping': 0.1,
    'pooling': 'dwc',
  },
  tune={'pvi.damping': 'log:0.03:0.3'},
  help='Partitioned variational inference (Ashman et al. 2022) with Flipout '
  'clients. A damping of 1 / (clients per round) keeps every precision '
  'positive; it needs many rounds, such as 60.',
)
