"""FedNova: averaging of updates normalized by the length of local training.

Notation: x the broadcast mean, y_k the client's trained mean, p_k its share of
the client weights, rho the momentum.
  v <- rho v + 1; a_k <- a_k + rate v     at each step, both from 0
  d_k = (y_k - x) / a_k                   the normalized update
  x <- x + tau sum_k p_k d_k              tau = sum_k p_k a_k, Eq. 6 and 9

At a constant rate, a_k is the rate times the paper's ||a_k||_1, which is
(t - rho (1 - rho^t) / (1 - rho)) / (1 - rho) after t steps. Equal a_k of all
clients give FedAvg's mean. a_k counts only SGD's own steps, not the changes by
other parts (`proximal`, `projection`).

References:
  J. Wang et al. Tackling the objective inconsistency problem in heterogeneous
  federated optimization. NeurIPS 2020, sections 4 and 5.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bfl_tf import server, training
from bfl_tf.startup import tf
from bfl_tf.statistics import Total


def _normalized(update, weight, reference):
  length = np.float64(update.extras[Part.name][0])
  moved = update.model.mean.astype(np.float64) - reference.mean
  return {'length': weight * length, 'moved': moved * (weight / length)}


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Server stage that sets the mean; other weights stay as pooled."""

  name = 'fednova'
  sets_mean = True
  statistics = (Total(_normalized),)

  def __call__(self, state, reference, pooled, statistics, seed):
    sums = statistics[self.statistics[0]]
    length, moved = (sums[k] / sums['weight'] for k in ('length', 'moved'))
    mean = reference.mean + length * moved
    return state._replace(model=state.model.replace_mean(mean)), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that sends a_k, the displacement by a constant gradient of 1.

  Attributes:
    client_optimizer: Optimizer of the clients.
  """

  client_optimizer: Any

  name = 'fednova'
  server_stage = Stage
  requires = {
    'client_optimizer': 'is_sgd',
    # The stage overwrites the mean with an average, so the rule must average.
    'pooling': 'averages_means',
  }
  # With such parts, the update is not the sum of SGD's steps.
  incompatible_with = ('changes_start', 'replaces_model')

  def begin(self, start, shared, memory):
    return tf.constant(0.0), tf.constant(0.0)

  def after_step(self, mean, carry, step):
    velocity, length = carry
    sgd = self.client_optimizer
    velocity = sgd.momentum * velocity + 1.0
    taken = 1.0 + sgd.momentum * velocity if sgd.nesterov else velocity
    return None, (velocity, length + step.learning_rate * taken)

  def finish(self, model, carry, trace):
    _, length = carry
    return model, length[tf.newaxis], None

  def bounds(self, trace):
    # The velocity of every step is between 1 and its limit.
    most = trace.sum_rates / (1.0 - self.client_optimizer.momentum)
    return 0.999 * trace.sum_rates, 1.001 * most
