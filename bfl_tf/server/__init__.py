"""Server stages, from the pooled model to the next global one: `stage.Stage`.

A stage that trains, predicts or draws asks for `resources`, a `Resources`.
"""

from bfl_tf.server.distil import Distil, DISTILLATIONS, sharpen, TARGETS
from bfl_tf.server.ensemble import Ensemble, GROUPS, groups_of
from bfl_tf.server.fine_tune import FineTune
from bfl_tf.server.fresh_head import FreshHead, last_layer
from bfl_tf.server.keep import Keep, packed, unpacked
from bfl_tf.server.momentum import Momentum
from bfl_tf.server.recalibrate import BATCH_NORMS, Recalibrate
from bfl_tf.server.resources import Resources, ServerData
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
  'FineTune',
  'FreshHead',
  'Keep',
  'Momentum',
  'Recalibrate',
  'Resources',
  'ServerData',
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
  'sign_threshold': SignThreshold,
  'students': Students,
}
