"""Batch normalization's statistics, re-estimated on the server's own data.

An average of the clients' moving statistics does not belong to the average of
their weights; unlabeled examples are enough to measure those that do.
"""

import dataclasses

from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage

BATCH_NORMS = ('average', 'recalibrate')


@dataclasses.dataclass(frozen=True, eq=False)
class Recalibrate(Stage):
  """Replaces the buffers of the model."""

  resources: Resources

  name = 'recalibrate'

  def __post_init__(self):
    self.resources.require_server_images('--batch_norm=recalibrate')

  def __call__(self, state, reference, pooled, statistics, seed):
    model = self.resources.measured(state.model, seed)
    return state._replace(model=model), {}
