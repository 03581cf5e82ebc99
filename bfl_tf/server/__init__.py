"""Server stages: how the pooled model becomes the next global one.

A stage has a `name`, the `statistics` that it needs beside the pooling rule,
and is called

  (state, reference, pooled, statistics, seed) -> (state, info)

or, if it makes groups of models to be scored with the round, a third thing: the
groups by name, which are not kept. `state.model` starts as the pooled model and
each stage of a chain rewrites it; `reference` (what was broadcast) and `pooled`
stay fixed. Stages compute in float64 and round once. A stage may have any of
these:

  init(model) -> slot   what it carries from round to round in `state.slots`, an
                        array or a dict of arrays
  predictors            names of the groups of models that it makes

One that trains or predicts is given what it names of the federation's
resources (`federation.resources`).
"""

from bfl_tf.server.distil import Distil, DISTILLATIONS, sharpen, TARGETS
from bfl_tf.server.ensemble import Ensemble, GROUPS, groups_of
from bfl_tf.server.fine_tune import FineTune
from bfl_tf.server.fresh_head import FreshHead, last_layer
from bfl_tf.server.keep import Keep, packed, unpacked
from bfl_tf.server.momentum import Momentum
from bfl_tf.server.recalibrate import BATCH_NORMS, Recalibrate
from bfl_tf.server.samples import Samples
from bfl_tf.server.scaffold import ExtraSum, Scaffold
from bfl_tf.server.sign_threshold import SignThreshold, SignVotes
from bfl_tf.server.students import Students
from bfl_tf.server.teacher_posteriors import TEACHER_POSTERIORS

__all__ = [
  'BATCH_NORMS',
  'DISTILLATIONS',
  'GROUPS',
  'STAGES',
  'TARGETS',
  'TEACHER_POSTERIORS',
  'Distil',
  'Ensemble',
  'ExtraSum',
  'FineTune',
  'FreshHead',
  'Keep',
  'Momentum',
  'Recalibrate',
  'Samples',
  'Scaffold',
  'SignThreshold',
  'SignVotes',
  'Students',
  'groups_of',
  'last_layer',
  'packed',
  'sharpen',
  'unpacked',
]

STAGES = {
  'distil': Distil,
  'ensemble': Ensemble,
  'fine_tune': FineTune,
  'fresh_head': FreshHead,
  'keep': Keep,
  'momentum': Momentum,
  'recalibrate': Recalibrate,
  'samples': Samples,
  'scaffold': Scaffold,
  'sign_threshold': SignThreshold,
  'students': Students,
}
