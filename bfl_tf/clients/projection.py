"""Projected gradient descent on clients: a ball that no step leaves.

The paper (section 3.2, Table 3) bounds the norm of a client's model by M = 3.
A Fixup ResNet-20 starts near 10.7, so a ball around zero cuts it down in the
first step; around the broadcast model, the default, it bounds the update, and
so how far clients drift apart.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

from bfl_tf import training
from bfl_tf.config.settings import Setting
from bfl_tf.startup import tf

BALLS = ('update', 'model')


@dataclasses.dataclass(frozen=True)
class Projection(training.Part):
  """Moves the mean back onto an L2 ball after each step that left it.

  Scales and the optimizer's own memory stay as they are. What never leaves the
  ball is trained as without it, bit for bit.
  """

  radius: Annotated[float, Setting('Radius of the L2 ball.', gt=0)] = 3.0
  ball: Annotated[
    str,
    Setting(
      'Quantity that the ball bounds: the update from the broadcast '
      'mean, or the model itself.',
      choices=BALLS,
    ),
  ] = 'update'

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
    """The share of steps that left the ball."""
    _, hits = carry
    return {'hit_fraction': hits / tf.cast(trace.steps, tf.float32)}
