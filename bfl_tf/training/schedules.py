"""Learning rates over rounds; inside a round the compiled loop decays them.

A schedule is a function `(rate, round, num_rounds) -> rate`, round from 0.
"""

import dataclasses
import operator


@dataclasses.dataclass(frozen=True)
class Constant:
  """The same rate every round."""

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    return rate


@dataclasses.dataclass(frozen=True)
class Steps:
  """Multiplies the rate at fractions of the run.

  Attributes:
    decay_at: fractions of `num_rounds` in (0, 1).
    decay_factor: multiplied in at each of them, in their order; the last one
      at all that follow.
    first_factor: multiplied in at the first round only.
    decay_after: whether a round that a fraction falls on, counted from 0, still
      has the rate before it, as in FedBE's published code.
  """

  decay_at: tuple[float, ...] = (0.3, 0.6)
  decay_factor: tuple[float, ...] = (0.1,)
  first_factor: float = 1.0
  decay_after: bool = False

  def __post_init__(self):
    if not self.decay_factor:
      raise ValueError('--decay_factor must have at least one factor.')

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    reached = operator.gt if self.decay_after else operator.ge
    passed = sum(reached(round_index, at * num_rounds) for at in self.decay_at)
    last = len(self.decay_factor) - 1
    for place in range(passed):
      rate *= self.decay_factor[min(place, last)]
    return rate * self.first_factor if round_index == 0 else rate


@dataclasses.dataclass(frozen=True)
class Exponential:
  """rate x round_decay^max(0, round - silent_rounds).

  Attributes:
    round_decay: 0.96 is the pooling paper's `reduces by a factor of .04`.
    silent_rounds: rounds before the decay sets in.
  """

  round_decay: float = 0.96
  silent_rounds: int = 50

  def __call__(self, rate: float, round_index: int, num_rounds: int) -> float:
    return rate * self.round_decay ** max(0, round_index - self.silent_rounds)


SCHEDULES = {
  'constant': Constant,
  'steps': Steps,
  'exponential': Exponential,
}
