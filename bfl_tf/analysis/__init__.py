"""What a finished run is asked: its model, its sites, its doubts."""

from bfl_tf.analysis.model import load, Prediction, Trained
