"""Projected gradient descent on clients, onto an L2 ball.

The paper (section 3.2, Table 3) bounds the norm of a client's model by M = 3.
A Fixup ResNet-20 starts with a norm near 10.7, so a ball around zero shrinks it
in the first step. By default, the ball is around the broadcast model and bounds
the update.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582.
"""

import dataclasses

from bfl_tf.declare.settings import setting
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.startup import tf

BALLS = ('update', 'model')


@dataclasses.dataclass(frozen=True)
class Projection(Local):
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

  def begin(self, ctx, memory):
    centre = ctx.broadcast.mean
    if self.ball == 'model':
      centre = tf.zeros_like(centre)
    return Start(ctx.start, (centre, 0.0))

  def after(self, mean, carry, step):
    centre, hits = carry
    offset = mean - centre
    norm = tf.norm(offset)
    left = norm > self.radius
    on_ball = centre + offset * (self.radius / norm)
    hits += tf.cast(left, tf.float32)
    return tf.where(left, on_ball, mean), (centre, hits)

  def end(self, model, carry, trace):
    _, hits = carry
    steps = tf.cast(trace.steps, tf.float32)
    return Sent(model, report={'hit_fraction': hits / steps})


projection = Projection
