"""FedNova: averaging of updates normalized by the length of local training.

Notation: x the broadcast mean, y_k the client's trained mean, p_k its share of
the client weights, rho the momentum. The server knows the rates of all steps,
and computes a_k itself.
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
from bfl_tf.methods.method import Method
from bfl_tf.statistics import Total


@dataclasses.dataclass(frozen=True)
class Stage(server.Stage):
  """Server stage that sets the mean; other weights stay as pooled."""

  client_optimizer: Any

  name = 'fednova'
  sets_mean = True

  @property
  def statistics(self):
    return (Total(self._normalized),)

  def length(self, rates: np.ndarray) -> float:
    """Returns a_k, the displacement by a constant gradient of 1."""
    rho = self.client_optimizer.momentum
    past = np.arange(1, len(rates) + 1) + self.client_optimizer.nesterov
    return float(np.sum(rates * (1 - rho**past) / (1 - rho)))

  def _normalized(self, update, weight, reference):
    length = self.length(update.rates)
    moved = update.model.mean.astype(np.float64) - reference.mean
    return {'length': weight * length, 'moved': moved * (weight / length)}

  def __call__(self, state, reference, pooled, statistics, seed):
    sums = statistics[self.statistics[0]]
    length, moved = (sums[k] / sums['weight'] for k in ('length', 'moved'))
    mean = reference.mean + length * moved
    return state._replace(model=state.model.replace_mean(mean)), {}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that only states what the server stage requires."""

  name = 'fednova'
  server_stage = Stage
  requires = {
    'client_optimizer': 'is_sgd',
    # The stage overwrites the mean with an average, so the rule must average.
    'pooling': 'averages_means',
  }
  # With such parts, the update is not the sum of SGD's steps.
  incompatible_with = ('changes_start', 'replaces_model')


fednova = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'fednova',
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.05,
    'sgd.momentum': 0.9,
    'pooling': 'nwa',
  },
  help="FedNova (Wang et al. 2020): normalizes updates by the clients' numbers "
  'of steps.',
)
