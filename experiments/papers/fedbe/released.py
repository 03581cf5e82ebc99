"""The Gaussian over global models of FedBE's published code.

Component of `--ensemble.posterior`; the package has that of Eq. 5.

References:
  H. Chen, W. Chao. https://github.com/hongyouc/FedBE.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import statistics
from bfl_tf.server import posteriors
from bfl_tf.startup import tfd


@dataclasses.dataclass(frozen=True)
class ReleasedGaussian:
  """The fit as a Statistic.

  Each tensor's update is scaled to length 1. The moments are those of clients
  with equal weights, with variances of at least 1e-5. The standard deviation is
  divided by 10. Both are then multiplied by the updates' mean length.

  Attributes:
    sizes: Number of elements of each tensor in `Weights.values`.
  """

  sizes: tuple[int, ...]

  def accumulate(self, update, weight, reference) -> statistics.Sums:
    delta = posteriors.delta_of(update, reference)
    tensors = np.split(delta, np.cumsum(self.sizes)[:-1])
    lengths = np.array([np.linalg.norm(tensor) for tensor in tensors])
    unit = delta / np.repeat(np.where(lengths > 0, lengths, 1.0), self.sizes)
    terms = {'unit': unit, 'square': np.square(unit), 'length': lengths}
    return statistics.single(1.0, terms)

  def finalize(
    self, sums, reference
  ) -> tuple[tfd.MultivariateNormalDiag, dict[str, float]]:
    total = sums.value('weight')
    unit = sums.value('unit') / total
    variance = sums.value('square') / total - np.square(unit)
    variance = np.maximum(variance, 1e-5)
    length = np.repeat(sums.value('length') / total, self.sizes)
    loc = reference.values + length * unit
    return posteriors.normal(loc, 0.1 * length * np.sqrt(variance)), {}


@dataclasses.dataclass(frozen=True)
class Released:
  """Distribution of group S."""

  def statistic(self, layout):
    return ReleasedGaussian(tuple(s.num_elements() for s in layout.shapes))

  def distribution(self, pooled, result, layout):
    return result, pooled


released = Released
