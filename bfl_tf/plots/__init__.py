"""Figures of recorded results: one function per figure, no pyplot state.

Functions take run directories or their data, and return the
`matplotlib.figure.Figure`. Those with `axes` can draw on given axes. A missing
file raises a FileNotFoundError. A missing column or array, or invalid values,
raise a ValueError.
"""

from bfl_tf.plots.calibration import (
  calibration_above,
  calibration_gap,
  confidence_histogram,
  member_confidence,
  pit_bars,
  pit_histogram,
  predicted_numbers,
  reliability_bars,
  reliability_diagram,
  risk_curves,
)
from bfl_tf.plots.clients import partition, sizes
from bfl_tf.plots.curves import corruption, learning_curve, retention, sweep
from bfl_tf.plots.dots import dots
from bfl_tf.plots.drawing import draw_run
