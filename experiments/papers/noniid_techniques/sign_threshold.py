"""Sign threshold: no update of weights if the clients' signs disagree.

Notation: w the broadcast mean, Delta_k a client's update of it, K clients.
  vote_i = sum_k sign(Delta_k)_i              all clients have equal votes
  w_i <- w_i where |vote_i| < theta           Eq. 4, with an absolute value

As printed, without the absolute value, no weight could decrease. After
`momentum` in the chain it gives w + eta_theta v: the velocity contains the full
mean update, but changes only weights on which this round agrees. Before
`momentum`, the velocity contains the remaining update and changes all weights.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582, section 3.4.
  M. S. Ozdayi et al. Defending against backdoors in federated learning with
  robust learning rate. AAAI 2021.
"""

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.server.stage import Stage
from bfl_tf.statistics import Total


def _votes(update, weight, reference):
  moved = update.model.mean.astype(np.float64) - reference.mean
  return {'votes': np.sign(moved)}


@dataclasses.dataclass(frozen=True)
class SignThreshold(Stage):
  """Resets means to their broadcast values if too few clients agree.

  Scales and buffers stay as pooled. `zero_rate_fraction` is the fraction of
  reset weights; it is 1 with fewer accepted updates than the threshold. With
  threshold 0, the result is bit-for-bit the pooled model.
  """

  num_clients: int
  clients_per_round: int
  threshold: int = setting(
    2,
    'Threshold theta: smallest absolute sum of signs at which a weight moves.',
    ge=0,
  )

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


sign_threshold = SignThreshold
