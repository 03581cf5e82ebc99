"""Figures of recorded results: one function per figure, no pyplot state.

Every function reads a run directory, draws on the axes it is given or on a new
figure, and returns the `matplotlib.figure.Figure`.
"""

from bfl_tf.plots.calibration import confidence_histogram, reliability_diagram
from bfl_tf.plots.clients import partition
from bfl_tf.plots.curves import learning_curve, retention
from bfl_tf.plots.drawing import draw_run

__all__ = [
  'confidence_histogram',
  'draw_run',
  'learning_curve',
  'partition',
  'reliability_diagram',
  'retention',
]
