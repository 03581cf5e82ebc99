"""Projected gradient descent on clients, onto an L2 ball.

The paper (section 3.2, Table 3) bounds the norm of a client's model by M = 3.
A Fixup ResNet-20 starts with a norm near 10.7, so a ball around zero shrinks it
in the first step. By default, the ball is around the broadcast model and bounds
the update.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import training
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf

BALLS = ('update', 'model')


@dataclasses.dataclass(frozen=True)
class Projection(training.Part):
  """Projects the mean onto an L2 ball after each step that leaves it.

  Scales and the optimizer state are unchanged. If no step leaves the ball,
  training is bit-for-bit identical to training without this part.
  """

  radius: float = setting(3.0, 'Radius of the L2 ball.', gt=0)
  ball: str = setting(
    'update',
    'Quantity that the ball bounds: the update from the broadcast '
    'mean, or the model itself.',
    choices=BALLS,
  )

  name = 'projection'

  def begin(self, start, shared, memory):
    around_zero = self.ball == 'model'
    return tf.zeros_like(start.mean) if around_zero else start.mean, 0.0

  def after_step(self, mean, carry, step):
    centre, hits = carry
    offset = mean - centre
    norm = tf.norm(offset)
    left = norm > self.radius
    on_ball = centre + offset * (self.radius / norm)
    hits += tf.cast(left, tf.float32)
    return tf.where(left, on_ball, mean), (centre, hits)

  def report(self, carry, trace):
    """Returns the fraction of steps that left the ball."""
    _, hits = carry
    return {'hit_fraction': hits / tf.cast(trace.steps, tf.float32)}
