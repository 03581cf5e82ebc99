"""IVON: a Gaussian posterior over all weights at the cost of Adam.

Notation (Shen et al. 2024, algorithm 1): m the mean, h the curvature of the
mean loss, l = N / T the effective sample size, N the number of examples and T
the weight of the KL term, d = 1 / (l prior_scale^2) the weight decay of the
prior N(0, prior_scale^2). For a prior with natural parameters eta (from a
client part or the broadcast), d is eta_2 / l, and d m becomes d m - eta_1 / l.
This d may be negative.
  theta = m + e / sqrt(l (h + d)),  e ~ N(0, I);  g^ the gradient at theta
  h^ = g^ (theta - m) l (h + d)
  g <- b1 g + (1 - b1) g^
  h <- b2 h + (1 - b2) h^ + (1 - b2)^2 (h - h^)^2 / (2 (h + d))
  m <- m - rate (g / (1 - b1^t) + d m) / (h + d)
  the posterior is N(m, 1 / (l (h + d)))

The code stores the precision p = l (h + d): p <- p (1 - u + u^2 / 2) with u =
(1 - b2) (h - h^) / (h + d). It is positive for any h^.

The initial precision is the broadcast posterior's, so it continues over rounds;
g restarts from 0 in each round, as in Adam. As in the authors' code,
`clip_radius` bounds the factor of the rate. Unlike their code, the rate is not
multiplied by the initial h + d.

References:
  Y. Shen et al. Variational learning is effective for large deep networks.
  ICML 2024.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import seeds
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf
from bfl_tf.training import objectives
from bfl_tf.training.optimizer import Optimizer, zeros_like


@dataclasses.dataclass(frozen=True)
class IVON(objectives.Objective, Optimizer):
  """Improved variational online Newton, one sample per step."""

  prior_scale: float = setting(1.0, objectives.PRIOR_SCALE)
  initial_scale: float = setting(0.05, objectives.INITIAL_SCALE)
  beta_1: float = setting(
    0.9, 'Decay rate of the averaged gradient.', ge=0, lt=1
  )
  beta_2: float = setting(
    0.99999,
    'Decay rate of the averaged curvature. Hundreds of local steps learn the '
    'scale only with a smaller value, such as 0.99; long local training may '
    'then diverge.',
    ge=0,
    lt=1,
  )
  clip_radius: float = setting(
    0.0,
    'Largest step of a weight, divided by the learning rate; 0 for no bound.',
    ge=0,
  )

  posterior_scope = 'all'
  minimizes = False
  takes_any_prior = True

  def slots(self, variables) -> list[tf.Variable]:
    return [slot for _ in range(3) for slot in zeros_like(variables)]

  def begin(self, slots, scales) -> None:
    for precision, scale in zip(self._split(slots)[1], scales):
      precision.assign(1.0 / tf.square(scale))

  def sample(self, variables, slots, step) -> None:
    stream = seeds.Stream(step.seed)
    _, precisions, noises = self._split(slots)
    for place, (variable, precision, noise) in enumerate(
      zip(variables, precisions, noises)
    ):
      normal = tf.random.stateless_normal(
        variable.shape, stream('sample', place), dtype=variable.dtype
      )
      noise.assign(normal * tf.math.rsqrt(precision))
      variable.assign_add(noise)

  def apply(self, variables, slots, gradients, step) -> None:
    size = step.kl_examples
    passed = 1.0 - self.beta_1 ** tf.cast(step.index + 1, tf.float32)
    for variable, momentum, p, noise, gradient, (shift, prior) in zip(
      variables, *self._split(slots), gradients, step.prior
    ):
      momentum.assign(self.beta_1 * momentum + (1.0 - self.beta_1) * gradient)
      u = (1.0 - self.beta_2) * (1.0 - prior / p - size * gradient * noise)
      p.assign(p * (1.0 - u + 0.5 * tf.square(u)))
      newton = size / passed * momentum + prior * variable - shift
      newton /= p
      if self.clip_radius:
        newton = tf.clip_by_value(newton, -self.clip_radius, self.clip_radius)
      variable.assign_sub(step.learning_rate * newton)

  def scales(self, slots, curvature, step) -> list[tf.Tensor]:
    return [tf.math.rsqrt(precision) for precision in self._split(slots)[1]]

  def _split(self, slots):
    count = len(slots) // 3
    return slots[:count], slots[count : 2 * count], slots[2 * count :]
