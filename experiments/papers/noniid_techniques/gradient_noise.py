"""Gaussian noise on every gradient of a client.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582, section 4.2 and Table 3.
  H. Noh et al. Regularizing deep neural networks by noise: its interpretation
  and optimization. NIPS 2017.
"""

from __future__ import annotations

import dataclasses

from bfl_tf.declare.settings import setting
from bfl_tf.parts import Local
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class GradientNoise(Local):
  """Adds N(0, scale^2) to the mean's gradient at each step.

  The noise is added after weight decay and before the optimizer. With scale 0,
  training is bit-for-bit identical to training without this part.
  """

  scale: float = setting(
    1e-4, 'Standard deviation of the noise on each weight and step.', ge=0
  )

  name = 'gradient_noise'

  def gradient(self, gradient, mean, carry, step):
    if not self.scale:
      return gradient
    noise = tf.random.stateless_normal(tf.shape(gradient), step.seed)
    return gradient + self.scale * noise


gradient_noise = GradientNoise
