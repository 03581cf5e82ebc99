"""Langevin optimizers: SGD with added noise, which samples the posterior.

Notation: g the gradient of the mean loss over a batch, N the client's number of
examples, so that U = N loss is the posterior's energy; h the learning rate.
  SGLD   w <- w - h g + sqrt(2 h / N) z                       z ~ N(0, I)
  pSGLD  V <- a V + (1 - a) g^2,  G = 1 / (l + sqrt(V))
         w <- w - h G g + sqrt(2 h G / N) z

The papers' step is e = 2 h / N. Weight decay d on the mean loss corresponds to
the prior N(0, 1 / (d N)). Like its authors, pSGLD omits the derivative of G.

References:
  M. Welling, Y. W. Teh. Bayesian learning via stochastic gradient Langevin
  dynamics. ICML 2011.
  C. Li et al. Preconditioned stochastic gradient Langevin dynamics for deep
  neural networks. AAAI 2016.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import seeds
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf
from bfl_tf.training.optimizer import Optimizer, zeros_like

# a and l.
_DECAY, _DAMPING = 0.99, 1e-5


@dataclasses.dataclass(frozen=True)
class SGLD(Optimizer):
  """Stochastic gradient Langevin dynamics."""

  temperature: float = setting(
    1.0,
    'Temperature of the posterior: 1 samples the Bayesian posterior; '
    'SGLD with 0 is SGD.',
    ge=0,
  )

  minimizes = False

  def apply(self, variables, slots, gradients, step) -> None:
    spread = _spread(step, self.temperature)
    for variable, gradient, noise in _noisy(variables, gradients, step):
      variable.assign_sub(step.learning_rate * gradient - spread * noise)


@dataclasses.dataclass(frozen=True)
class PSGLD(SGLD):
  """SGLD with RMSprop's preconditioner, with the constants of Li et al."""

  def slots(self, variables) -> list[tf.Variable]:
    return zeros_like(variables)

  def apply(self, variables, slots, gradients, step) -> None:
    spread = _spread(step, self.temperature)
    noisy = _noisy(variables, gradients, step)
    for (variable, gradient, noise), slot in zip(noisy, slots):
      square = _DECAY * slot + (1.0 - _DECAY) * tf.square(gradient)
      slot.assign(square)
      inverse = 1.0 / (_DAMPING + tf.sqrt(square))
      variable.assign_sub(
        step.learning_rate * inverse * gradient
        - spread * tf.sqrt(inverse) * noise
      )


def _spread(step, temperature):
  return tf.sqrt(2.0 * temperature * step.learning_rate / step.num_examples)


def _noisy(variables, gradients, step):
  stream = seeds.Stream(step.seed)
  for place, (variable, gradient) in enumerate(zip(variables, gradients)):
    seed = stream('noise', place)
    yield (
      variable,
      gradient,
      tf.random.stateless_normal(variable.shape, seed, dtype=variable.dtype),
    )
