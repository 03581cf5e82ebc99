"""The Gaussian over global models of FedBE's published code.

Component of `--ensemble.posterior`; the package has that of Eq. 5.

References:
  H. Chen, W. Chao. https://github.com/hongyouc/FedBE.
"""

from __future__ import annotations

import dataclasses

import numpy as np

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


released = ReleasedPosterior
