"""Partitioned variational inference: a posterior that is prior times factors.

Notation, of each variational weight: eta the natural parameters (precision
times mean, precision); p the prior N(0, prior_scale^2), q the broadcast
posterior with mean m and precision l, t_k client k's factor, K all clients, r
the damping; M_k what client k has sent so far, S what all have.
  eta(t_k) = M_k + (eta(q) - eta(p) - S) / K
  q / t_k, the cavity, is the client's prior; m_k, l_k is what it ends with
  it sends the precision l' = l + r (l_k - l), the mean m + r l_k (m_k - m) / l'
  M_k <- M_k + eta(sent) - eta(q)      S <- S + sum_k (eta(sent) - eta(q))

Under `dwc` q moves by the product of t_k's new factor over its old one. M and S
begin at 0 and count what was accepted, after its rounding: that prior times
factors is q holds for every q. What nobody sent, the start's own scale, a
rounding, a guard of the rule, a server stage's move, is an equal share of each
factor's.

Clients that are asked together may agree on more than one of them knows: a
damping of 1 / the clients of a round keeps every precision positive. All of
them a round are synchronous PVI, one a round with damping 1 is sequential PVI,
one client with damping 1 is variational inference.

References:
  T. D. Bui et al. Partitioned variational inference: a unified framework
  encompassing federated and continual learning. arXiv:1811.11206, algorithm 1.
  M. Ashman et al. Partitioned variational inference: a framework for
  probabilistic federated learning. arXiv:2202.12275.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from bfl_tf import server, training, weights
from bfl_tf.config.settings import Setting
from bfl_tf.startup import tf
from bfl_tf.statistics import Total

# Least precision of a cavity, of the prior's.
_MIN_CAVITY = 0.1


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Takes the cavity as the client's prior; keeps what the client has sent.

  Attributes:
    num_clients: Number of clients of the run, including those that are not
      sampled.
    prior_precision: Precision of the prior p.
    damping: r.
  """

  num_clients: int
  prior_precision: float
  damping: Annotated[
    float,
    Setting("Damping factor in (0, 1] on each client's update.", gt=0, le=1),
  ] = 0.2

  name = 'pvi'
  server_stage = 'pvi'
  requires = {'pooling': ('dwc',)}
  # It counts what it sends: nothing may change that on its way.
  incompatible_with = ('swag', 'attack')

  def for_one_site(self) -> Part:
    return dataclasses.replace(self, damping=1.0)

  def init_memory(self, model):
    return np.zeros([2, model.loc.size])

  def factor(self, start, shared, memory) -> tf.Tensor:
    """Returns eta(t_k), `[2, num_loc]`; its arguments are those of `prior`."""
    prior = tf.constant([[0.0], [self.prior_precision]], tf.float64)
    rest = weights.natural(start) - prior - shared
    return memory + rest / self.num_clients

  def _cavity(self, start, shared, memory):
    """Returns the natural parameters of the cavity, and where its floor
    applies.
    """
    cavity = weights.natural(start) - self.factor(start, shared, memory)
    shift, precision = tf.unstack(cavity)
    floor = tf.constant(_MIN_CAVITY * self.prior_precision, tf.float64)
    held = tf.maximum(precision, floor)
    # The pull on the mean, at m, is what it is without the floor.
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


def _changed(update, weight, reference):
  change = weights.natural(update.model) - weights.natural(reference)
  return {'change': change.numpy()}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Counts what clients sent; its slot, S, is broadcast to the part."""

  name = 'pvi'
  statistics = (Total(_changed),)

  def init(self, model) -> np.ndarray:
    """Returns S = 0, `[2, num_loc]` float64."""
    return np.zeros([2, model.loc.size])

  def __call__(self, state, reference, pooled, statistics, seed):
    change = statistics[self.statistics[0]]['change']
    slots = {**state.slots, self.name: state.slots[self.name] + change}
    return state._replace(slots=slots), {}
