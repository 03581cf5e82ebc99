"""Server rate 0 where the clients' updates disagree in sign.

Notation: w the broadcast mean, Delta_k a client's update of it, K clients.
  vote_i = sum_k sign(Delta_k)_i              one client, one vote
  w_i <- w_i where |vote_i| < theta           Eq. 4, with an absolute value

As printed, without the absolute value, no weight could fall. Behind `momentum`
in the chain it is w + eta_theta v: the velocity takes the whole mean update in,
and moves only where this round's updates agree. In front of it the velocity
takes in what is left of the update, and moves weights whose rate is 0 too.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582, section 3.4.
  M. S. Ozdayi et al. Defending against backdoors in federated learning with
  robust learning rate. AAAI 2021.
"""

import dataclasses
from typing import Annotated

import numpy as np

from bfl_tf.config.settings import Setting
from bfl_tf.server.stage import Stage
from bfl_tf.statistics import Total


def _votes(update, weight, reference):
  moved = update.model.mean.astype(np.float64) - reference.mean
  return {'votes': np.sign(moved)}


@dataclasses.dataclass(frozen=True)
class SignThreshold(Stage):
  """Leaves the mean where it was broadcast if too few clients agree.

  Scales and buffers stay as they were pooled. A round with fewer accepted
  updates than the threshold moves nothing, and its column says so. At threshold
  0 it is not there, bit for bit.
  """

  num_clients: int
  clients_per_round: int
  threshold: Annotated[
    int,
    Setting(
      'Threshold theta: smallest absolute sum of signs at which a '
      'weight moves.',
      ge=0,
    ),
  ] = 2

  name = 'sign_threshold'
  statistics = (Total(_votes),)

  def __post_init__(self):
    most = self.clients_per_round or self.num_clients
    if self.threshold > most:
      raise ValueError(
        f'--sign_threshold.threshold={self.threshold} must be at most the '
        f'number of clients per round, {most}: no weight would change.'
      )

  def __call__(self, state, reference, pooled, statistics, seed):
    votes = statistics[self.statistics[0]]['votes']
    still = np.abs(votes) < self.threshold
    mean = np.where(still, reference.mean, state.model.mean)
    return state._replace(model=state.model.replace_mean(mean)), {
      'zero_rate_fraction': float(still.mean())
    }
