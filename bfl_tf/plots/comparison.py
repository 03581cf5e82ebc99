"""Runs side by side: the mean over seeds, in a band to the least and largest.

Figures of groups: by the name in the legend, the run directories of one
setting, a seed each.
"""

from collections.abc import Mapping, Sequence
import textwrap

from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, curves, recorded

Groups = Mapping[str, Sequence[recorded.RunDir]]
# Of a legend: letters an inch, beside the handles; inches a line.
_LETTERS, _LINE = 13, 0.17


def learning_curves(groups: Groups) -> Figure:
  """Draws scores against rounds, a panel a score; seeds are a band."""
  panels = canvas.new_axes((12.0, 3.8), 3, sharey=False)
  for axes, column in zip(panels, curves.SCORES):
    curves.learning_curve(groups, column, axes)
  return _one_legend(panels)


def reliability(groups: Groups) -> Figure:
  """Draws accuracy less confidence against confidence, a line a setting.

  On the line at 0 a model is calibrated, below it is overconfident. Bins hold
  equally many examples of a run.
  """
  (axes,) = canvas.new_axes((6.0, 3.8))
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
    'Reliability',
    'Confidence (probability)',
    'Accuracy less confidence (fraction)',
  )
  return _one_legend([axes])


def risk_coverage(groups: Groups) -> Figure:
  """Draws accuracy, 1 less the risk, of the least uncertain by their share."""
  (axes,) = canvas.new_axes((6.0, 3.8))
  curves.retention(groups, [axes], ['normalized_entropy'])
  return _one_legend([axes])


def _one_legend(panels: Sequence[Axes]) -> Figure:
  """Puts a legend of all lines below the panels, in place of their own.

  The figure grows by its height, so that long names leave the panels as large.
  """
  figure = canvas.figure_of(panels[0])
  handles, labels = panels[0].get_legend_handles_labels()
  if panels[0].collections:
    handles.append(patches.Patch(color=canvas.GREY, alpha=0.18, lw=0))
    labels.append('Band: lowest to highest seed')
  width = int(_LETTERS * figure.get_figwidth())
  labels = [textwrap.fill(label, width) for label in labels]
  for axes in panels:
    if own := axes.get_legend():
      own.remove()
  figure.legend(
    handles, labels, loc='outside lower center', fontsize=8.5, frameon=False
  )
  num_lines = '\n'.join(labels).count('\n') + 1
  figure.set_figheight(figure.get_figheight() + _LINE * num_lines)
  return figure
