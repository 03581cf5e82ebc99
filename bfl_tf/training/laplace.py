"""Laplace approximation: a Gaussian around the trained weights.

Notation: m the trained mean, l = N / T the effective sample size, N the number
of examples and T the weight of the KL term, eta the natural parameters of the
prior (precision times mean, precision), h the diagonal of the Fisher
information of a label, averaged over the client's examples.
  m minimizes the mean loss + (eta_2 m^2 / 2 - eta_1 m) / l, by Adam
  h = mean_x E_y [(d log p(y | x, m) / d m)^2],  y ~ p(y | x, m)
  the posterior is N(m, 1 / (l h + eta_2))

For classes and for numbers with known noise, h is also the diagonal of the
generalized Gauss-Newton matrix. The training loop estimates h without bias by
squared gradients of batches with sampled labels. The relative standard error of
h is about sqrt(2 / (samples times batches)).

With `covariance=full`, the precision is l H + diag(eta_2), where H is the mean
Fisher information of all weights together, computed from Jacobians without
sampled labels. For classes and for numbers with known noise, l H is the
generalized Gauss-Newton matrix, and for a linear network the Hessian.

With the client part `pvi`, the prior is the global posterior without the
client's factor, and the method is FedLap-Cov (Swaroop et al. 2025), with the
bound of `pvi` on the precision of this prior.

References:
  D. MacKay. A practical Bayesian framework for backpropagation networks. 1992.
  S. Swaroop et al. Connecting federated ADMM to Bayes. ICLR 2025, section 4.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import weights
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf
from bfl_tf.training import first_order, objectives
from bfl_tf.training.optimizer import Optimizer

# Largest number of weights with a full covariance.
MOST_WEIGHTS = 2000


@dataclasses.dataclass(frozen=True)
class Laplace(objectives.Objective, Optimizer):
  """Adam, then a Laplace approximation."""

  adam: first_order.Adam = first_order.Adam()  # noqa: RUF009
  prior_scale: float = setting(1.0, objectives.PRIOR_SCALE)
  curvature_samples: int = setting(
    10,
    'Number of sampled labels per example, from which the curvature is '
    'estimated; one costs about as much as a local epoch, and more reduce '
    'the noise of the estimate.',
    ge=1,
  )
  covariance: str = setting(
    'diagonal',
    'Covariance of the posterior: diagonal, or full for at most '
    f'{MOST_WEIGHTS} weights; --pooling=product multiplies full ones exactly.',
    choices=('diagonal', 'full'),
  )

  posterior_scope = 'all'
  initial_scale = 1.0
  minimizes = False
  predicts_with_mean = True

  @property
  def has_full_covariance(self) -> bool:
    return self.covariance == 'full'

  def slots(self, variables) -> list[tf.Variable]:
    return self.adam.slots(variables)

  def apply(self, variables, slots, gradients, step) -> None:
    gradients = [
      gradient + (precision * variable - shift) / step.kl_examples
      for gradient, variable, (shift, precision) in zip(
        gradients, variables, step.prior
      )
    ]
    self.adam.apply(variables, slots, gradients, step)

  def scales(self, slots, curvature, step) -> list[tf.Tensor]:
    return [
      tf.math.rsqrt(step.kl_examples * h + precision)
      for h, (_, precision) in zip(curvature, step.prior)
    ]

  def precision(self, slots, fisher, step) -> tf.Tensor:
    """Returns the precision `[num_loc, num_loc]` of the posterior, float64.

    Args:
      fisher: `[num_loc, num_loc]` float64, H.
    """
    # A prior is a number or an array per variable; slots have the shapes.
    prior = [p + tf.zeros_like(slot) for slot, (_, p) in zip(slots, step.prior)]
    diagonal = tf.cast(weights.flatten(prior), tf.float64)
    size = tf.cast(step.kl_examples, tf.float64)
    return size * fisher + tf.linalg.diag(diagonal)
