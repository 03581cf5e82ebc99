"""Data sets: loading, encoding, normalization and partitions."""

from bfl_tf.data.arrays import from_arrays
from bfl_tf.data.columns import Dataset, Split
from bfl_tf.data.csv_files import rows_like
from bfl_tf.data.dataset_config import COLUMNS, DatasetConfig, FORMAT
from bfl_tf.data.encoding import Feature, Features
from bfl_tf.data.loading import load
from bfl_tf.data.moments import Moments
from bfl_tf.data.unlabeled import load_unlabeled
