"""FedPA: posterior averaging with samples of each client's posterior.

Notation (Al-Shedivat et al. 2021, section 4 and algorithms 3 and 4): x_0 the
broadcast mean; x_1 ... x_l the client's samples, each the mean of `period` SGD
iterates; mu_l their mean; rho the shrinkage.
  S_t     = I + rho sum_{i=2}^t (i - 1) / i u_i u_i^T,  u_i = x_i - mu_{i-1}
  Sigma_l = S_l / (1 + (l - 1) rho)                     Eq. 6
  delta   = Sigma_l^{-1} (x_0 - mu_l)
The client sends x_0 - delta. If all posteriors are Gaussian and each
Sigma_l is the covariance of its posterior, the only fixed point of averaging
with equal weights is the mode of the product of all posteriors. With rho 0,
delta = x_0 - mu_l.

The recursion computes delta from l vectors without a matrix:
  v_t     = S_{t-1}^{-1} u_t
  g_t     = rho (t - 1) / t,  c_t = g_t (t u_t^T d_{t-1} - u_t^T v_t)
  d_t     = d_{t-1} - (1 + c_t / (1 + g_t u_t^T v_t)) v_t / t
  d_1     = x_0 - x_1,  delta = (1 + (l - 1) rho) d_l

The samples are the last l x `period` steps of a round; earlier steps are
burn-in. In the first `burn_in_rounds` rounds the client sends its trained model
as in FedAvg.

References:
  M. Al-Shedivat et al. Federated learning via posterior averaging: a new
  perspective and practical algorithms. ICLR 2021.
"""

import dataclasses

from bfl_tf import training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class FedPA(Local):
  """Sends the broadcast minus the client's posterior delta."""

  samples: int = setting(
    5, 'Number of samples of the posterior per round.', ge=1
  )
  period: int = setting(
    10, 'Number of local steps that a sample is the mean of.', ge=1
  )
  shrinkage: float = setting(0.01, 'Shrinkage rho of the covariance.', ge=0)
  burn_in_rounds: int = setting(
    0, 'Number of first rounds that are those of FedAvg.', ge=0
  )

  name = 'fedpa'
  exact = True

  def check(self, facts):
    facts.need_sgd()
    needed = self.samples * self.period
    for client, steps, _ in facts.trainings:
      facts.need(
        steps >= needed,
        f'{needed} steps per round (samples times period), and client {client} '
        f'takes {steps}: raise --local_epochs or --local_steps, or lower '
        f'--fedpa.samples={self.samples} or --fedpa.period={self.period}',
      )

  def begin(self, ctx, memory):
    start = ctx.broadcast.mean
    size = start.shape[0]
    carry = {
      'start': start,
      'iterates': tf.zeros([size]),
      'mean': tf.zeros([size]),
      'delta': tf.zeros([size]),
      'v': tf.zeros([self.samples, size]),
      'products': tf.zeros([self.samples]),
      'count': tf.constant(0),
      'is_burn_in': tf.constant(0.0),
    }
    return Start(ctx.start, carry)

  def after(self, mean, carry, step):
    place = step.index - (step.num_steps - self.samples * self.period)
    carry = carry | {
      'is_burn_in': tf.cast(step.round < self.burn_in_rounds, tf.float32)
    }
    if place >= 0:
      carry = carry | {'iterates': carry['iterates'] + mean / self.period}
      if (place + 1) % self.period == 0:
        carry = self._with_sample(carry)
    return mean, carry

  def _with_sample(self, carry):
    """Returns the carry with the mean of the last iterates as a sample."""
    sample, v, products = carry['iterates'], carry['v'], carry['products']
    index, mean, delta = carry['count'], carry['mean'], carry['delta']
    t = tf.cast(index + 1, tf.float32)
    # Row i of v belongs to sample i + 1; rows without a sample are 0.
    number = tf.range(1.0, self.samples + 1.0)
    weight = self.shrinkage * (number - 1) / number
    u = sample - mean
    shares = weight * tf.linalg.matvec(v, u) / (1 + weight * products)
    own = u - tf.linalg.matvec(v, shares, transpose_a=True)
    product, along = tf.reduce_sum(u * own), tf.reduce_sum(u * delta)
    g = self.shrinkage * (t - 1) / t
    c = g * (t * along - product) / (1 + g * product)
    if index == 0:
      delta, own, product = carry['start'] - sample, 0 * own, 0.0
    else:
      delta -= (1 + c) * own / t
    return carry | {
      'iterates': tf.zeros_like(sample),
      'mean': mean + (sample - mean) / t,
      'delta': delta,
      'v': tf.tensor_scatter_nd_update(v, [[index]], [own]),
      'products': tf.tensor_scatter_nd_update(products, [[index]], [product]),
      'count': index + 1,
    }

  def end(self, model, carry, trace):
    factor = 1 + (self.samples - 1) * self.shrinkage
    sent = carry['start'] - factor * carry['delta']
    trained = carry['is_burn_in'] > 0
    return Sent(model.replace_mean(tf.where(trained, model.mean, sent)))


fedpa = Method(
  (FedPA(samples=5, period=2, shrinkage=0.01),),
  optimizer=training.SGD(momentum=0.9),
  learning_rate=0.1,
  tune={'fedpa.shrinkage': 'log:0.001:1'},
  help=__doc__,
)
