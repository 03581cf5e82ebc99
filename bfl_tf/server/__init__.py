"""Server parts, which turn the pooled model into the next global model."""

from bfl_tf.server.ensemble import Ensemble, GROUPS, groups_of
from bfl_tf.server.fine_tune import FineTune
from bfl_tf.server.keep_samples import KeepSamples
from bfl_tf.server.privacy import PRIVACY, Privacy
from bfl_tf.server.recalibrate import BATCH_NORMS, Recalibrate
from bfl_tf.server.resources import Resources
from bfl_tf.server.store_updates import packed, StoreUpdates, unpacked
from bfl_tf.server.teacher_posteriors import TEACHER_POSTERIORS
