"""Learning-rate schedules over rounds.

A schedule is a function `(rate, round, num_rounds) -> rate`, with rounds from
0. The training loop applies the decay within a round.
"""

import dataclasses

from bfl_tf.declare.settings import setting

_TINY = 1e-6


@dataclasses.dataclass(frozen=True)
class Constant:
  """A constant learning rate."""

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    return rate


@dataclasses.dataclass(frozen=True)
class Steps:
  """Multiplies the rate at fractions of the run."""

  decay_at: tuple[float, ...] = setting(
    (0.3, 0.6),
    'Fractions of all rounds after which the learning rate is '
    'multiplied by a decay factor.',
    gt=0,
    lt=1,
  )
  decay_factor: tuple[float, ...] = setting(
    (0.1,),
    'Decay factors; the last one is used for all remaining fractions.',
    gt=0,
  )
  first_factor: float = setting(
    1.0, 'Factor on the learning rate in the first round.', gt=0
  )
  decay_after: bool = setting(
    False,
    'Decay one round later if a fraction falls on a round, as in '
    "FedBE's published code.",
  )

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    # The tolerance is for rounding: 0.55 of 100 rounds is 55.00000000000001.
    off = _TINY if self.decay_after else -_TINY
    passed = sum(round_index > at * num_rounds + off for at in self.decay_at)
    last = len(self.decay_factor) - 1
    for place in range(passed):
      rate *= self.decay_factor[min(place, last)]
    return rate * self.first_factor if round_index == 0 else rate


@dataclasses.dataclass(frozen=True)
class Decay:
  """Exponential decay: rate x decay^max(0, round - silent_rounds).

  Attributes:
    decay: Decay factor; 0.96 is the pooling paper's `reduces by a factor of
      .04`.
  """

  decay: float = setting(0.96, 'Factor on the learning rate per round.', gt=0)
  silent_rounds: int = setting(
    50, 'Number of rounds before the decay begins.', ge=0
  )

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    return rate * self.decay ** max(0, round_index - self.silent_rounds)


SCHEDULES = {'constant': Constant, 'steps': Steps, 'exponential': Decay}
