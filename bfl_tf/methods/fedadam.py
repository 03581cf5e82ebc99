"""Adaptive server optimizers: FedAdagrad, FedYogi and FedAdam.

The clients' mean update replaces the gradient of the server.

Notation: w the broadcast mean, m the mean of the model so far, D = m - w,
u and v the first and the second moment, initially 0 and adaptivity^2.
  u <- decay u + (1 - decay) D
  v <- v + D^2                                      adagrad
  v <- v - (1 - second_decay) D^2 sign(v - D^2)     yogi
  v <- second_decay v + (1 - second_decay) D^2      adam
  w <- w + learning_rate u / (sqrt(v) + adaptivity)

As in the paper, the moments have no bias correction.

References:
  S. Reddi et al. Adaptive federated optimization. ICLR 2021, algorithm 2.
"""

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Outcome, Server

_OPTIMIZERS = ('adam', 'yogi', 'adagrad')


@dataclasses.dataclass(frozen=True)
class AdaptiveOptimizer(Server):
  """Updates the mean; scales and buffers stay as pooled."""

  optimizer: str = setting(
    'adam',
    'Server optimizer, which determines the update of the second moment.',
    choices=_OPTIMIZERS,
  )
  learning_rate: float = setting(0.01, 'Learning rate of the server.', gt=0)
  decay: float = setting(0.9, 'Decay rate of the first moment.', ge=0, lt=1)
  second_decay: float = setting(
    0.99, 'Decay rate of the second moment, for adam and yogi.', ge=0, lt=1
  )
  adaptivity: float = setting(
    1e-3,
    'Constant added to the denominator; a larger value makes the '
    'optimizer more like SGD.',
    gt=0,
  )

  name = 'adaptive'

  def slot(self, model):
    size = model.mean.size
    return {
      'first': np.zeros(size),
      'second': np.full(size, self.adaptivity**2),
    }

  def step(self, model, sums, slot, ctx):
    start = ctx.broadcast.mean.astype(np.float64)
    update = model.mean - start
    first = self.decay * slot['first'] + (1 - self.decay) * update
    second = self._second(slot['second'], np.square(update))
    moved = self.learning_rate * first / (np.sqrt(second) + self.adaptivity)
    return Outcome(
      model.replace_mean(start + moved),
      {'first': first, 'second': second},
      {'server_step_norm': float(np.linalg.norm(moved))},
    )

  def _second(self, second, square):
    share = 1 - self.second_decay
    if self.optimizer == 'adagrad':
      return second + square
    if self.optimizer == 'yogi':
      return second - share * square * np.sign(second - square)
    return self.second_decay * second + share * square


fedadam = Method(
  (AdaptiveOptimizer(optimizer='adam', learning_rate=0.01),),
  tune={'adaptive.learning_rate': 'log:0.001:0.1'},
  help='FedAdam (Reddi et al. 2021): Adam on the server.',
)
