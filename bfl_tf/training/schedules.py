"""Schedules of local epochs and of learning rates.

The rates of all steps of a local training are computed before it begins.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf.declare import component
from bfl_tf.declare.settings import setting

_TINY = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule(component.Component):
  """A constant learning rate and number of epochs; the base of schedules.

  Rounds count from 0.
  """

  min_epochs: int = setting(
    0,
    'Minimum number of local epochs; if positive, the number of each client is '
    'sampled between it and --local_epochs.',
    ge=0,
  )
  step_decay: float = setting(
    1.0, 'Factor on the learning rate after each step of a round.', gt=0
  )

  def epochs(self, local_epochs: int, round_index: int) -> tuple[int, int]:
    """Returns the minimum and the maximum number of epochs in a round.

    The number of each client is sampled between them; it is fixed if they are
    equal.
    """
    return self.min_epochs or local_epochs, local_epochs

  def rate(self, rate: float, round_index: int, num_rounds: int) -> float:
    """Returns the learning rate at the start of a round."""
    return rate

  def factors(
    self,
    num_steps: int,
    steps_per_epoch: int,
    round_index: int,
    num_rounds: int,
  ) -> np.ndarray:
    """Returns factors `[num_steps]` on the rate of each step of a round."""
    return self.step_decay ** np.arange(num_steps, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class Steps(Schedule):
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

  # The tolerance is for rounding: 0.55 of 100 rounds is 55.00000000000001.
  tolerance = _TINY

  def rate(self, rate, round_index, num_rounds):
    ends = (at * num_rounds - self.tolerance for at in self.decay_at)
    last = len(self.decay_factor) - 1
    for place in range(sum(round_index > end for end in ends)):
      rate *= self.decay_factor[min(place, last)]
    return rate


@dataclasses.dataclass(frozen=True)
class Exponential(Schedule):
  """Exponential decay: rate x decay^max(0, round - silent_rounds).

  Attributes:
    decay: Decay factor; 0.96 is the pooling paper's `reduces by a factor of
      .04`.
  """

  decay: float = setting(0.96, 'Factor on the learning rate per round.', gt=0)
  silent_rounds: int = setting(
    0, 'Number of rounds before the decay begins.', ge=0
  )

  def rate(self, rate, round_index, num_rounds):
    return rate * self.decay ** max(0, round_index - self.silent_rounds)


SCHEDULES = {'constant': Schedule, 'steps': Steps, 'exponential': Exponential}
