"""Federated Langevin dynamics: the global model as a chain of samples.

Notation (Deng et al. 2021, section 3 and Eq. 6): U_k client k's energy, the
negative log-likelihood of its N_k examples plus its share p_k of the prior's;
p_k its weight in the average; N all examples; h the learning rate of the mean
loss over N examples, so that the paper's eta is h / N; T the temperature. Of
the paper's noise, rho is 0: clients share none of it.
  f_k = U_k / p_k
  w_k <- w_k - eta grad f_k + sqrt(2 eta T) xi_k
  xi_k = sqrt(1 / p_k) z_k          z_k ~ N(0, I)
The weighted average of xi_k over the clients has variance 1. With one local
step, the average is therefore a step of Langevin dynamics on the posterior of
all examples.

p_k is N_k / N, or 1 / K with `--weighting=equal`. If a round samples M clients,
weights must be equal, the average has M terms, and z_k has the factor sqrt(M).
With M = 1 this is DSGLD: one chain, which moves from client to client (Ahn et
al. 2014; Eq. 4 of El Mekkaoui et al. 2021).

References:
  W. Deng et al. On convergence of federated averaging Langevin dynamics.
  arXiv:2112.05120 (FA-LD).
  S. Ahn, B. Shahbaba, M. Welling. Distributed stochastic gradient MCMC. ICML
  2014.
  K. El Mekkaoui et al. Federated stochastic gradient Langevin dynamics.
  UAI 2021.
"""

import dataclasses

from bfl_tf import training
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local
from bfl_tf.server import KeepSamples, pooling
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class Langevin(Local):
  """Adds the prior's gradient and Langevin noise to SGD."""

  temperature: float = setting(
    1.0, 'Temperature of the posterior; 0 for no noise.', ge=0
  )
  prior_scale: float = setting(
    1.0, 'Standard deviation of the prior of each weight.', gt=0
  )

  name = 'langevin'
  exact = True

  def check(self, facts):
    facts.need_plain_sgd()
    facts.need_constant_weights()
    facts.need(
      isinstance(facts.pool, pooling.NaiveWeightedAverage), '--pooling=nwa'
    )
    facts.need(
      not self.run.clients_per_round or facts.weighting.is_equal,
      '--weighting=equal with --clients_per_round: otherwise the variance of '
      'the mean noise depends on the sampled clients',
    )
    facts.need(
      not facts.is_private,
      'the number of all examples, which changes every update: remove '
      '--privacy',
    )

  def _share(self, step):
    """Returns p_k."""
    if self.run.weighting.is_equal:
      return 1.0 / self.run.num_clients
    return step.num_examples / step.all_examples

  def gradient(self, gradient, mean, carry, step):
    n, n_k = step.all_examples, step.num_examples
    prior = mean / (self.prior_scale**2 * n)
    return n_k / (n * self._share(step)) * gradient + prior

  def after(self, mean, carry, step):
    own = 1.0 / self._share(step)
    if self.run.clients_per_round:
      own = float(self.run.clients_per_round)
    noise = tf.sqrt(own) * tf.random.stateless_normal(mean.shape, step.seed)
    rate = step.learning_rate / step.all_examples
    return mean + tf.sqrt(2.0 * rate * self.temperature) * noise, carry


_LANGEVIN = Langevin(prior_scale=1.0, temperature=1.0)

fa_ld = Method(
  (_LANGEVIN, KeepSamples(number=5, burn_in=0.5)),
  optimizer=training.SGD(),
  learning_rate=0.1,
  predictor='chain',
  tune={
    'langevin.temperature': 'log:0.001:1',
    'keep_samples.number': 'uniform:2:5',
  },
  help='FA-LD (Deng et al. 2021): the clients train by Langevin dynamics, and '
  'the run predicts with the global models of its last rounds.',
)

dsgld = Method(
  (_LANGEVIN, KeepSamples(number=10, burn_in=0.5)),
  optimizer=training.SGD(),
  learning_rate=0.1,
  weighting=pooling.Equal(),
  predictor='chain',
  tune={'langevin.temperature': 'log:0.001:1'},
  needs={'clients_per_round': 1},
  help='DSGLD (Ahn et al. 2014): one chain of Langevin dynamics, which moves '
  'to another client in each round. The run predicts with the samples of its '
  'last rounds.',
)
