"""Runs side by side, the mean over seeds where there are several.

Figures of groups: by the name in the legend, the run directories of one
setting, a seed each.
"""

from collections.abc import Callable, Mapping, Sequence

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, curves, recorded

Groups = Mapping[str, Sequence[recorded.RunDir]]
_COVERAGES = np.linspace(0.01, 1, 100)


def learning_curves(
  groups: Groups,
  columns: Sequence[str] = ('accuracy', 'nll', 'ece'),
) -> figure_lib.Figure:
  """Draws scores against rounds, a panel a score; seeds are a band."""
  size = (4.0 * len(columns), 3.6 + 0.16 * len(groups))
  panels = canvas.new_figure(size).subplots(1, len(columns), squeeze=False)[0]
  for axes, column in zip(panels, columns):
    lines = {
      name: [recorded.metric(run, column) for run in runs]
      for name, runs in groups.items()
    }
    _draw(axes, lines)
    title, unit = curves.LABELS.get(column, (column, ''))
    canvas.finish(axes, title, 'Communication round', unit)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  _one_legend(panels)
  return canvas.figure_of(panels[0])


def calibration(groups: Groups, num_bins: int = 15) -> figure_lib.Figure:
  """Draws accuracy less confidence against confidence, a line a setting.

  On the line at 0 a model is calibrated, below it is overconfident. Bins hold
  equally many examples of a run.
  """
  (axes,) = canvas.new_axes((6.0, 3.8 + 0.16 * len(groups)))

  def gaps(run):
    read = recorded.predictions(run)
    bins = metrics.equal_bins(read.probs, read.labels, num_bins)
    return bins.confidence, bins.accuracy - bins.confidence

  lines = {n: [gaps(run) for run in runs] for n, runs in groups.items()}
  # Bins of equal rank: their confidences are averaged over seeds too.
  _draw(axes, lines, marker='o')
  axes.axhline(0, ls='--', c=canvas.GREY, lw=1.2)
  canvas.finish(
    axes,
    'Calibration',
    'Confidence (probability)',
    'Accuracy less confidence (fraction)',
  )
  _one_legend([axes])
  return canvas.figure_of(axes)


def risk_coverage(
  groups: Groups, measure: str = 'normalized_entropy'
) -> figure_lib.Figure:
  """Draws the error rate of the least uncertain against their share.

  Args:
    groups: as above.
    measure: of `curves.MEASURES`.
  """
  (axes,) = canvas.new_axes((6.0, 3.8 + 0.16 * len(groups)))

  def risks(run):
    read = recorded.predictions(run)
    right = metrics.is_correct(read.probs, read.labels)
    curve = metrics.retention_curve(getattr(read, measure), right)
    # The same coverages for runs that were tested on different examples.
    return _COVERAGES, np.interp(_COVERAGES, curve.retained, 1 - curve.accuracy)

  _draw(axes, {n: [risks(run) for run in runs] for n, runs in groups.items()})
  canvas.finish(
    axes,
    f'Risk by {curves.MEASURES[measure].lower()}',
    'Coverage (fraction answered)',
    'Risk (fraction wrong)',
  )
  axes.set_xlim(0, 1)
  axes.set_ylim(bottom=0)
  _one_legend([axes])
  return canvas.figure_of(axes)


def _draw(axes: axes_lib.Axes, lines: Mapping[str, Sequence], marker: str = ''):
  """Draws each name's lines as one, cut to what all of them have."""
  for (name, found), style in zip(lines.items(), canvas.styles(len(lines))):
    size = min(len(x) for x, _ in found)
    x = np.mean([x[:size] for x, _ in found], axis=0)
    scores = np.transpose([y[:size] for _, y in found])
    canvas.draw_seeds(axes, x, scores, label=name, marker=marker, **style)


def _one_legend(panels: Sequence[axes_lib.Axes]) -> None:
  """A legend of all lines below the panels."""
  figure = canvas.figure_of(panels[0])
  handles, labels = panels[0].get_legend_handles_labels()
  longest = max(map(len, labels), default=0)
  columns = max(1, min(4, int(90 * figure.get_figwidth() / 8) // (longest + 8)))
  figure.legend(
    handles, labels, loc='outside lower center', ncols=columns, fontsize=8.5,
    frameon=False,
  )  # fmt: skip


Draw = Callable[[Groups], figure_lib.Figure]
FIGURES: dict[str, Draw] = {'learning_curves': learning_curves}
# Of runs that kept predictions, as one does whose model did not run away.
OF_PREDICTIONS: dict[str, Draw] = {
  'calibration': calibration,
  'risk_coverage': risk_coverage,
}
