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
from bfl_tf.parts import Outcome, Server


@dataclasses.dataclass(frozen=True)
class SignThreshold(Server):
  """Resets means to their broadcast values if too few clients agree.

  Scales and buffers stay as pooled. `zero_rate_fraction` is the fraction of
  reset weights; it is 1 with fewer accepted updates than the threshold. With
  threshold 0, the result is bit-for-bit the pooled model.
  """

  threshold: int = setting(
    2,
    'Threshold theta: smallest absolute sum of signs at which a weight moves.',
    ge=0,
  )

  name = 'sign_threshold'

  def check(self, facts):
    facts.need(
      self.threshold <= facts.clients_of_a_round,
      f'at least {self.threshold} clients per round, and has '
      f'{facts.clients_of_a_round}: lower --sign_threshold.threshold',
    )

  def terms(self, update, weight, broadcast):
    moved = update.model.mean.astype(np.float64) - broadcast.mean
    return {'votes': np.sign(moved)}

  def step(self, model, sums, slot, ctx):
    still = np.abs(sums['votes']) < self.threshold
    mean = np.where(still, ctx.broadcast.mean, model.mean)
    report = {'zero_rate_fraction': float(still.mean())}
    return Outcome(model.replace_mean(mean), slot, report)


sign_threshold = SignThreshold
