"""Components of FedBE's published code.

They are values of `--ensemble.posterior`, where the package has the Gaussian of
Eq. 5, and of `--schedule`.

References:
  H. Chen, W. Chao. https://github.com/hongyouc/FedBE.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import training
from bfl_tf.declare.settings import setting
from bfl_tf.server import posteriors, teacher_posteriors


@dataclasses.dataclass(frozen=True)
class ReleasedPosterior(teacher_posteriors.Gaussian):
  """Distribution of group S.

  Each tensor's update is scaled to length 1. The moments are those of clients
  with equal weights, with variances of at least 1e-5. The standard deviation is
  divided by 10. Both are then multiplied by the updates' mean length.
  """

  @property
  def _sizes(self):
    """Number of elements of each tensor in `Weights.values`."""
    return [shape.num_elements() for shape in self.run.layout.shapes]

  def terms(self, update, weight, broadcast):
    delta = update.model.values.astype(np.float64) - broadcast.values
    tensors = np.split(delta, np.cumsum(self._sizes)[:-1])
    lengths = np.array([np.linalg.norm(tensor) for tensor in tensors])
    unit = delta / np.repeat(np.where(lengths > 0, lengths, 1.0), self._sizes)
    return {'unit': unit, 'unit2': np.square(unit), 'length': lengths}

  def distribution(self, pooled, sums, broadcast):
    unit, square, length = (
      sums[name] / sums['count'] for name in ('unit', 'unit2', 'length')
    )
    variance = np.maximum(square - np.square(unit), 1e-5)
    length = np.repeat(length, self._sizes)
    loc = broadcast.values + length * unit
    scale = 0.1 * length * np.sqrt(variance)
    return posteriors.normal(loc, scale), pooled


@dataclasses.dataclass(frozen=True)
class ReleasedSchedule(training.Steps):
  """Steps with a first round of half the rate and more epochs at the start.

  A fraction that falls on a round has its effect one round later.
  """

  early_epochs: int = setting(
    40, 'Number of local epochs in the first five rounds.', ge=0
  )
  epoch_decay: float = setting(
    1.0, 'Factor on the learning rate after every 30 epochs of a round.', gt=0
  )

  tolerance = -training.Steps.tolerance

  def epochs(self, local_epochs, round_index):
    if self.early_epochs and round_index < 5:
      return self.early_epochs, self.early_epochs
    return super().epochs(local_epochs, round_index)

  def rate(self, rate, round_index, num_rounds):
    rate = super().rate(rate, round_index, num_rounds)
    return rate if round_index else 0.5 * rate

  def factors(self, num_steps, steps_per_epoch, *of_round):
    decays = np.arange(num_steps) // steps_per_epoch // 30
    factors = super().factors(num_steps, steps_per_epoch, *of_round)
    return self.epoch_decay**decays * factors


released, schedule = ReleasedPosterior, ReleasedSchedule
