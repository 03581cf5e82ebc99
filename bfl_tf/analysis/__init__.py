"""Analysis of finished runs: predictions, reports, uncertainty, export."""

from bfl_tf.analysis.model import load, Prediction, Trained
