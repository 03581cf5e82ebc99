"""Re-estimation of batch-normalization statistics on the server's data.

The average of the clients' moving statistics does not match the average of
their weights. Unlabeled examples suffice to estimate the right statistics.
"""

import dataclasses

from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage

BATCH_NORMS = ('average', 'recalibrate')


@dataclasses.dataclass(frozen=True, eq=False)
class Recalibrate(Stage):
  """Re-estimates the buffers of the model."""

  resources: Resources

  name = 'recalibrate'

  def __post_init__(self):
    self.resources.require('--batch_norm=recalibrate')

  def __call__(self, state, reference, pooled, statistics, seed):
    model = self.resources.measured(state.model, seed)
    return state._replace(model=model), {}
