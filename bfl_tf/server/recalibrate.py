"""Re-estimation of batch-normalization statistics on the server's data.

The average of the clients' moving statistics does not match the average of
their weights. Unlabeled examples suffice to estimate the right statistics.
"""

import dataclasses

from bfl_tf.parts import Outcome, Server

BATCH_NORMS = ('average', 'recalibrate')


@dataclasses.dataclass(frozen=True)
class Recalibrate(Server):
  """Re-estimates the buffers of the model."""

  name = 'recalibrate'

  def check(self, facts):
    facts.need_server_examples()

  def step(self, model, sums, slot, ctx):
    return Outcome(ctx.tools.measured(model, ctx.seed))
