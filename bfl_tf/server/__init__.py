"""Server stages: how the pooled model becomes the next global one.

A stage has a `name`, the `statistics` that it needs beside the pooling rule,
`init(model) -> slot`, and is called

  (state, reference, pooled, statistics, seed) -> (state, info)

A slot is an array or a dict of arrays. `state.model` starts as the pooled model
and each stage of a chain rewrites it; `reference` (what was broadcast) and
`pooled` stay fixed. Stages compute in float64 and round once. A stage that
trains is given what it names among `server_workers`, `server_indices` and
`validation`.
"""

from bfl_tf.server.fine_tune import FineTune
from bfl_tf.server.momentum import Momentum
from bfl_tf.server.scaffold import ExtraSum, Scaffold

__all__ = ['STAGES', 'ExtraSum', 'FineTune', 'Momentum', 'Scaffold']

STAGES = {'fine_tune': FineTune, 'momentum': Momentum, 'scaffold': Scaffold}
