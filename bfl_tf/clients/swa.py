"""Stochastic weight averaging: the mean of the weights along the way.

References:
  P. Izmailov et al. Averaging weights leads to wider optima and better
  generalization. UAI 2018.
"""

import dataclasses
from typing import ClassVar

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Swa:
  """Averages the mean after every `swa_cycle`-th step beyond `swa_start`."""

  swa_start: int = 250
  swa_cycle: int = 25

  name: ClassVar[str] = 'swa'
  needs: ClassVar[str | None] = None

  def collections(self, num_steps: int) -> int:
    """How many weights are averaged in a training of so many steps."""
    return max(
      0, num_steps // self.swa_cycle - self.swa_start // self.swa_cycle
    )

  def check(self, num_steps: int, num_examples: int) -> None:
    """Raises a ValueError if no cycle ends in so many steps."""
    if not self.collections(num_steps):
      raise ValueError(
        f'averages nothing: {num_steps} steps end no cycle of '
        f'swa_cycle={self.swa_cycle} after swa_start={self.swa_start}.'
      )

  def begin(self, start, shared, memory):
    """Carries the average and how many it is of."""
    return tf.zeros_like(start.mean), 0.0

  def after_step(self, mean, carry, step):
    """Takes the mean in where a cycle ends; leaves it as it is."""
    average, count = carry
    taken = step.index + 1
    ends = (taken > self.swa_start) & (taken % self.swa_cycle == 0)
    count += tf.cast(ends, tf.float32)
    average = tf.cond(
      ends, lambda: average + (mean - average) / count, lambda: average
    )
    return None, (average, count)

  def finish(self, model, carry, trace):
    """Returns the average in place of the last weights."""
    average, _ = carry
    return model.replace_mean(average), None, None
