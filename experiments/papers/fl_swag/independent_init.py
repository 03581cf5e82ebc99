"""Independent initialization of each client, in place of the broadcast.

Without a shared start, the hidden units of two clients have no common order.
FL-SWAG (section 8.2) reports that every average of deep networks then
collapses.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022.
  H. Wang et al. Federated learning with matched averaging. ICLR 2020.
"""

from __future__ import annotations

import dataclasses
import math

from bfl_tf import seeds, weights
from bfl_tf.parts import Local
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class IndependentInit(Local):
  """Draws all kernels anew from N(0, 2 / inputs) (He et al. 2015).

  The draws replace the kernels after the first training step. Biases and
  parameters of normalization keep their values after this step.
  """

  name = 'independent_init'

  def check(self, facts):
    exact = [part.name for part in facts.locals if part.exact]
    facts.need(
      not exact,
      'an update that may contain other changes than the steps of training: '
      f'remove {", ".join(exact)}',
    )

  def after(self, mean, carry, step):
    mean = tf.cond(
      tf.equal(step.index, 0), lambda: self._drawn(mean, step), lambda: mean
    )
    return mean, carry

  def _drawn(self, mean, step):
    stream, layout = seeds.Stream(step.seed), self.run.layout
    tensors = weights.unflatten(mean, layout.loc + layout.point)
    return weights.flatten(
      [
        _kernel(tensor, stream('kernel', place), name)
        if tensor.shape.rank > 1
        else tensor
        for place, (tensor, name) in enumerate(
          zip(tensors, layout.mean_names, strict=True)
        )
      ]
    )


def _kernel(like, seed, name):
  # A depthwise kernel [height, width, channels, 1] has one filter per channel.
  depthwise = 'depthwise_kernel' in name
  inputs = math.prod(like.shape[:-2] if depthwise else like.shape[:-1])
  return tf.random.stateless_normal(
    like.shape, seed, stddev=math.sqrt(2 / inputs)
  )


independent_init = IndependentInit
