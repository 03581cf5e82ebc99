"""Differential privacy of clients, which the server adds to the pooling.

Notation: K clients, each of which joins a round independently with probability
q; t_k the vector of all terms that the rule sums for client k with weight 1,
t_0 the same for the broadcast; C, z the clip norm and the noise multiplier.
  s = sum_k (t_k - t_0) min(1, C / |t_k - t_0|) + N(0, (z C)^2 I)
  the rule receives q K t_0 + s as the sum of terms, and q K as that of weights

Adding or removing a client moves the noiseless sum by at most C, if it does not
change the training data of other clients. Therefore the normalization of inputs
and labels and the division of the data count as fixed in advance. All else is a
function of s and of earlier rounds. Hence the broadcasts of all rounds together
have the (epsilon, delta) of a composition of Poisson-sampled Gaussian
mechanisms, whose privacy loss distribution is composed numerically.

References:
  H. B. McMahan et al. Learning differentially private recurrent language
  models. ICLR 2018.
  A. Koskela et al. Computing tight differential privacy guarantees using FFT.
  AISTATS 2020.
"""

import bisect
from collections.abc import Mapping
import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from bfl_tf import seeds, statistics, weights
from bfl_tf.declare import component
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Pool
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class Privacy(component.Component):
  """No privacy; the base of privacy mechanisms.

  Attributes:
    is_private: Whether the clients of a round, and their number, are secret.
  """

  num_clients: int
  clients_per_round: int

  name = 'none'
  is_private: ClassVar[bool] = False

  def check(self, facts: Any) -> None:
    """Rejects a run without a guarantee, by `facts.need`."""

  def sample(self, seed: int, round_index: int) -> list[int]:
    """Returns the sorted numbers of the clients of a round."""
    if not self.clients_per_round:
      return list(range(self.num_clients))
    generator = seeds.generator(seed, 'client_sampling', round_index)
    return sorted(
      generator.choice(
        self.num_clients, self.clients_per_round, replace=False
      ).tolist()
    )

  def protect(
    self, pool: Pool, broadcast: weights.Weights, seed: int, round_index: int
  ) -> Pool:
    """Returns the pooling rule of a round."""
    return pool

  def spent(self, num_rounds: int) -> Mapping[str, float]:
    """Returns columns of `metrics.csv` after a number of rounds."""
    return {}

  def affordable(self, num_rounds: int) -> int:
    """Returns the number of rounds that the budget allows, at most all."""
    return num_rounds

  def notes(self) -> tuple[str, ...]:
    """Returns lines for the output of the run."""
    return ()


@dataclasses.dataclass(frozen=True)
class CentralPrivacy(Privacy):
  """Central differential privacy: clipped updates and Gaussian noise.

  Each client joins a round with probability clients_per_round / num_clients.
  Neighbouring data sets differ by all data of one client, which is added or
  removed.
  """

  clip_norm: float = setting(
    1.0,
    "Largest L2 norm of a client's change of all pooled terms together; a "
    'larger change is scaled down.',
    gt=0,
  )
  noise_multiplier: float = setting(
    1.0,
    'Standard deviation of the noise on the sum over clients, in units of '
    'clip_norm.',
    gt=0,
    le=1e6,
  )
  delta: float = setting(
    1e-5,
    'Delta of the (epsilon, delta) guarantee when one client is added or '
    'removed.',
    gt=0,
    lt=1,
  )
  epsilon: float = setting(
    0.0,
    'Privacy budget: the run ends before the round that would exceed this '
    'epsilon when one client is added or removed; 0 for no budget.',
    ge=0,
  )
  name = 'central'
  is_private = True

  def __post_init__(self):
    if self.delta > 1 / self.num_clients:
      raise ValueError(
        f'--{self.name}.delta={self.delta:g} must be at most 1 / (number of '
        f'clients) = {1 / self.num_clients:g}: otherwise the guarantee permits '
        'to publish all data of one client.'
      )

  @property
  def expected_clients(self) -> int:
    """Expected number of clients of a round, the fixed denominator."""
    return self.clients_per_round or self.num_clients

  @property
  def noise_scale(self) -> float:
    """Standard deviation of the noise on the sum over clients."""
    return self.noise_multiplier * self.clip_norm

  def check(self, facts):
    # The noise is defined for sums of terms that are linear in the moments.
    facts.need(
      type(facts.pool) in (pooling.NaiveWeightedAverage, pooling.WeightedSum),
      '--pooling=nwa or ws, because no noise is defined for '
      f'{facts.flag_of_pool}',
    )
    config = facts.config
    facts.need(
      config.weighting == 'auto' or facts.weighting.is_equal,
      '--weighting=equal, because all clients have weight 1',
    )
    # A round that is trained again after a crash would have the same noise.
    facts.need(config.checkpoint_every == 1, '--checkpoint_every=1')
    facts.need(
      facts.objective.kl_examples != 'all',
      'a KL term that does not depend on the number of all examples: set '
      'kl_examples=own',
    )
    for part in facts.servers:
      if part is not facts.pool:
        facts.need(
          not part.has('terms'),
          f'no other sums of updates than those of the pooled model: remove '
          f'{part.name}',
        )
    if not facts.model:
      return
    for part in facts.locals:
      facts.need(
        not (part.has('memory') or part.name in facts.extras
             or part.fits_posterior),
        'updates that consist of the pooled model, and no memories: remove '
        f'{part.name}',
      )  # fmt: skip
    facts.need(
      not facts.model.buffers.shape[0],
      'a network without batch normalization, whose statistics it does not '
      'cover',
    )
    facts.need(
      math.isfinite(self.spent(1)['epsilon']),
      f'a finite epsilon: raise --{self.name}.delta={self.delta:g}',
    )

  def sample(self, seed, round_index):
    generator = seeds.generator(seed, 'poisson_sampling', round_index)
    rate = self.expected_clients / self.num_clients
    return np.flatnonzero(generator.random(self.num_clients) < rate).tolist()

  def protect(self, pool, broadcast, seed, round_index):
    generator = seeds.generator(seed, 'privacy_noise', round_index)
    return NoisyPool(self, pool, broadcast, generator)

  def spent(self, num_rounds):
    rate = self.expected_clients / self.num_clients
    return {
      'epsilon': epsilon(self.noise_multiplier, rate, self.delta, num_rounds)
    }

  def affordable(self, num_rounds):
    if not self.epsilon:
      return num_rounds
    within = bisect.bisect_right(
      range(1, num_rounds + 1),
      self.epsilon,
      key=lambda rounds: self.spent(rounds)['epsilon'],
    )
    if not within:
      raise ValueError(
        f'--{self.name}.epsilon={self.epsilon:g} is below the epsilon '
        f'{self.spent(1)["epsilon"]:.4g} of one round: raise it, or '
        f'--{self.name}.noise_multiplier={self.noise_multiplier:g}.'
      )
    return within

  def notes(self):
    few = (
      'warning: noise hides the average of fewer than 20 clients: the model '
      'may be useless',
    )
    return (
      f'privacy: epsilon at delta {self.delta:g}, if one client is added or '
      f'removed, of {self.num_clients} clients, {self.expected_clients} '
      'expected per round',
      'privacy: it covers the models of all rounds. It covers no other column '
      'of metrics.csv and no count in partition.csv. It holds only while '
      'secret.key is secret, and counts normalization and the division of the '
      'data as fixed in advance',
      *(few if self.num_clients < 20 else ()),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class NoisyPool(Pool):
  """A pooling rule with clipped terms and noise; `generator` draws it."""

  privacy: CentralPrivacy
  pool: Pool
  broadcast: weights.Weights
  generator: np.random.Generator

  @functools.cached_property
  def start(self) -> dict[str, np.ndarray]:
    """Terms of the broadcast."""
    update = statistics.ClientUpdate(0, 1, self.broadcast)
    return self._terms(update)

  def terms(self, update, weight, broadcast):
    change = self._terms(update)
    square = 0.0
    for name, terms in change.items():
      terms -= self.start[name]
      square += np.sum(np.square(terms))
    most = self.privacy.clip_norm
    factor = min(1.0, most / max(math.sqrt(square), 1e-300))
    return {name: terms * factor for name, terms in change.items()}

  def step(self, model, sums, slot, ctx):
    count, scale = self.privacy.expected_clients, self.privacy.noise_scale
    noisy = {'weight': count, 'max_weight': count, 'count': count}
    for name, start in self.start.items():
      noise = self.generator.normal(0.0, scale, start.shape)
      # A round may have no clients.
      noisy[name] = count * start + (sums.get(name, 0.0) + noise)
    return self.pool.step(model, noisy, slot, ctx)

  def _terms(self, update):
    terms = self.pool.terms(update, 1.0, self.broadcast)
    return {k: np.array(v, np.float64) for k, v in terms.items()}


@functools.cache
def epsilon(
  noise_multiplier: float, rate: float, delta: float, num_rounds: int
) -> float:
  """Returns an upper bound on epsilon when one client is added or removed."""
  try:
    import dp_accounting
    from dp_accounting import pld
  except ImportError as error:
    raise ValueError(
      '--privacy=central needs the package dp-accounting: pip install '
      "'bfl_tf[privacy]'."
    ) from error
  # The privacy loss of a round grows like 1 / noise_multiplier^2.
  accountant = pld.PLDAccountant(
    dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    value_discretization_interval=1e-4 * max(1.0, noise_multiplier**-2),
  )
  event = dp_accounting.PoissonSampledDpEvent(
    rate, dp_accounting.GaussianDpEvent(noise_multiplier)
  )
  return float(accountant.compose(event, num_rounds).get_epsilon(delta))


PRIVACY: dict[str, Any] = {'none': Privacy, 'central': CentralPrivacy}
