"""Server stages: how the pooled model becomes the next global one.

A stage has a `name`, the `statistics` that it needs beside the pooling rule,
`init(model) -> slot`, and is called

  (state, reference, pooled, statistics, seed) -> (state, info)

`state.model` starts as the pooled model and each stage of a chain rewrites it;
`reference` (what was broadcast) and `pooled` stay fixed. Stages compute in
float64 and round once.
"""

from bfl_tf.server.momentum import Momentum

__all__ = ['STAGES', 'Momentum']

STAGES = {'momentum': Momentum}
