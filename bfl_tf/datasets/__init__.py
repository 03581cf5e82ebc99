"""Real data as columns, loaded once, uint8 until the graph casts it."""

from bfl_tf.datasets.arrays import from_arrays
from bfl_tf.datasets.columns import Dataset, Split
from bfl_tf.datasets.csv_files import rows_like
from bfl_tf.datasets.encoding import Feature, Features
from bfl_tf.datasets.loading import load
from bfl_tf.datasets.moments import Moments
from bfl_tf.datasets.reading import COLUMNS, Reading
from bfl_tf.datasets.unlabeled import load_unlabeled
