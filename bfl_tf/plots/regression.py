"""Figures of numeric predictions of one run."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, recorded

_LEVEL = 0.9


def predicted_numbers(
  run_dir: recorded.RunDir, axes: Axes | None = None
) -> Figure:
  """Draws predictive means with central 90 % intervals, by label."""
  read = recorded.numeric_predictions(run_dir)
  axes = axes or canvas.panel((5.0, 4.4))
  half = metrics.half_width(_LEVEL) * read.scale
  label = f'mean and {_LEVEL:.0%} interval'
  axes.errorbar(
    read.labels, read.mean, half, fmt='o', ms=3, lw=0.8, alpha=0.6,
    c=canvas.BLUE, label=label,
  )  # fmt: skip
  ends = [np.min(read.labels), np.max(read.labels)]
  axes.plot(ends, ends, '--', c=canvas.GREY, label='prediction = label')
  canvas.finish(axes, 'Predictions', 'Label', 'Prediction')
  canvas.legend_of_lines(axes)
  return canvas.figure_of(axes)


def pit_histogram(
  run_dir: recorded.RunDir, num_bins: int = 15, axes: Axes | None = None
) -> Figure:
  """Draws the histogram of P(prediction <= label).

  It is flat if predictions are calibrated, U-shaped if they are overconfident,
  and has a hump in the middle if they are underconfident.
  """
  values = metrics.pit(recorded.numeric_predictions(run_dir))
  return pit_bars(np.histogram(values, num_bins, (0, 1))[0], axes)


def pit_bars(counts: np.ndarray, axes: Axes | None = None) -> Figure:
  """Draws the histogram of `pit_histogram` from its counts `[num_bins]`."""
  axes = axes or canvas.panel((5.0, 4.0))
  axes.bar(
    np.arange(len(counts)) / len(counts),
    counts * len(counts) / counts.sum(),
    1 / len(counts),
    align='edge',
    color=canvas.SKY,
    ec='white',
  )
  axes.axhline(1, ls='--', c=canvas.GREY)
  canvas.finish(
    axes,
    'Calibration: probability integral transform',
    'P(prediction ≤ label)',
    'Density',
  )
  return canvas.figure_of(axes)
