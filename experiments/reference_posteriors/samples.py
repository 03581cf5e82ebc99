"""Distance of the samples of a chain from the true posterior."""

from __future__ import annotations

import dataclasses

from bfl_tf import server
from bfl_tf.declare.settings import setting
from experiments.reference_posteriors import distance


@dataclasses.dataclass(frozen=True)
class Distance(server.KeepSamples):
  """Adds the distance of the samples' moments after the last sample.

  It has the settings of `distance.Distance`, and replaces it in a preset.
  """

  dataset: str = setting('digits', 'Data set of the run.')
  samples: int = setting(4000, 'Number of samples per chain.', ge=10)

  name = 'distance'

  def __call__(self, state, reference, pooled, statistics, seed):
    state, columns, groups = super().__call__(
      state, reference, pooled, statistics, seed
    )
    kept = state.slots[self.name]
    if kept['count'] == self.number:
      of_hmc = distance.truth(self.dataset, self.samples)
      q = distance.Gaussian.of_samples(kept['mean'])
      columns |= of_hmc.columns(q)
    return state, columns, groups
