"""Ditto: a personal model of each client, close to the global model.

Notation (Li et al. 2021, Eq. 1 and algorithm 1): w the broadcast, v_k the
personal model of client k, F_k its loss, lambda the weight of the penalty.
  w_k minimizes F_k(w_k), begins at w, and is sent
  v_k minimizes F_k(v_k) + lambda / 2 |v_k - w|^2, begins at the client's last
      v_k (in the first round at w), and stays on the client

Both have the same optimizer and number of steps. With a posterior, |.| compares
means. v_k has its own statistics of batch normalization.

References:
  T. Li et al. Ditto: Fair and robust federated learning through
  personalization. ICML 2021.
"""

import dataclasses

from bfl_tf.declare.settings import setting
from bfl_tf.methods import keep_local
from bfl_tf.methods.method import Method
from bfl_tf.parts import Start


@dataclasses.dataclass(frozen=True)
class Ditto(keep_local.KeepLocal):
  """Trains the personal model, after the model that the client sends."""

  weight: float = setting(
    0.1, 'Weight lambda of the penalty on the personal model.', ge=0
  )

  name = 'ditto'
  is_second = True

  def begin(self, ctx, memory):
    return Start(ctx.start._replace(**memory), ctx.broadcast.mean)

  def gradient(self, gradient, mean, broadcast, step):
    return gradient + self.weight * (mean - broadcast)


ditto = Method(
  (Ditto(weight=0.1),),
  tune={'ditto.weight': 'log:0.01:10'},
  help=__doc__,
)

local = Method(
  (Ditto(weight=0),),
  help='Local training: Ditto without the penalty. Each personal model begins '
  'at the initial model, and the server never changes it.',
)
