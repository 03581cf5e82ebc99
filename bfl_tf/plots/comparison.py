"""Runs side by side, the mean over seeds where there are several.

Figures of groups: by the name in the legend, the run directories of one
setting, a seed each.
"""

from collections.abc import Mapping, Sequence

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, curves, recorded

Groups = Mapping[str, Sequence[recorded.RunDir]]
_COVERAGES = np.linspace(0.01, 1, 100)


def learning_curves(groups: Groups) -> figure_lib.Figure:
  """Draws scores against rounds, a panel a score; seeds are a band."""
  panels = canvas.new_axes((12.0, 3.6 + 0.16 * len(groups)), 3, sharey=False)
  for axes, column in zip(panels, curves.SCORES):
    curves.learning_curve(groups, column, axes)
  return _one_legend(panels)


def calibration(groups: Groups) -> figure_lib.Figure:
  """Draws accuracy less confidence against confidence, a line a setting.

  On the line at 0 a model is calibrated, below it is overconfident. Bins hold
  equally many examples of a run.
  """
  (axes,) = canvas.new_axes((6.0, 3.8 + 0.16 * len(groups)))
  results, styles = recorded.all_predictions(groups), canvas.styles(len(groups))
  for (name, seeds), style in zip(results.items(), styles):
    bins = [metrics.equal_bins(read.probs, read.labels) for read in seeds]
    # Bins of equal rank: their confidences are averaged over seeds too.
    confidence = np.mean([each.confidence for each in bins], axis=0)
    gaps = np.transpose([each.accuracy - each.confidence for each in bins])
    canvas.draw_seeds(axes, confidence, gaps, label=name, marker='o', **style)
  axes.axhline(0, ls='--', c=canvas.GREY, lw=1.2)
  canvas.finish(
    axes,
    'Calibration',
    'Confidence (probability)',
    'Accuracy less confidence (fraction)',
  )
  return _one_legend([axes])


def risk_coverage(groups: Groups) -> figure_lib.Figure:
  """Draws the error rate of the least uncertain against their share."""
  (axes,) = canvas.new_axes((6.0, 3.8 + 0.16 * len(groups)))
  results, styles = recorded.all_predictions(groups), canvas.styles(len(groups))
  for (name, seeds), style in zip(results.items(), styles):
    # The same coverages for runs that were tested on different examples.
    found = np.transpose([_risks(read) for read in seeds])
    canvas.draw_seeds(axes, _COVERAGES, found, label=name, **style)
  canvas.finish(
    axes,
    'Risk by normalized entropy',
    'Coverage (fraction answered)',
    'Risk (fraction wrong)',
  )
  axes.set_xlim(0, 1)
  axes.set_ylim(bottom=0)
  return _one_legend([axes])


def _risks(read):
  right = metrics.is_correct(read.probs, read.labels)
  curve = metrics.retention_curve(read.normalized_entropy, right)
  return np.interp(_COVERAGES, curve.retained, 1 - curve.accuracy)


def _one_legend(panels: Sequence[axes_lib.Axes]) -> figure_lib.Figure:
  """Puts a legend of all lines below the panels, in place of their own."""
  figure = canvas.figure_of(panels[0])
  handles, labels = panels[0].get_legend_handles_labels()
  longest = max(map(len, labels))
  columns = max(1, min(4, int(90 * figure.get_figwidth() / 8) // (longest + 8)))
  for axes in panels:
    if own := axes.get_legend():
      own.remove()
  figure.legend(
    handles, labels, loc='outside lower center', ncols=columns, fontsize=8.5,
    frameon=False,
  )  # fmt: skip
  return figure
