"""Server parts, which turn the pooled model into the next global model."""

from typing import Any

from bfl_tf.server.adaptive import Adaptive
from bfl_tf.server.distil import Distil
from bfl_tf.server.ensemble import Ensemble, GROUPS, groups_of
from bfl_tf.server.fine_tune import FineTune
from bfl_tf.server.keep_samples import KeepSamples
from bfl_tf.server.momentum import Momentum
from bfl_tf.server.privacy import PRIVACY, Privacy
from bfl_tf.server.recalibrate import BATCH_NORMS, Recalibrate
from bfl_tf.server.resources import Resources
from bfl_tf.server.store_updates import packed, StoreUpdates, unpacked
from bfl_tf.server.teacher_posteriors import TEACHER_POSTERIORS

SERVER_PARTS: dict[str, Any] = {
  part.name: part
  for part in (
    Adaptive,
    Distil,
    Ensemble,
    FineTune,
    KeepSamples,
    StoreUpdates,
    Momentum,
    Recalibrate,
  )
}
