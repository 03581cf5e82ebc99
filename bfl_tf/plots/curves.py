"""Figures of scores by round, by setting or by fraction of data retained.

#### References

[1]: John Fischer et al. Federated Bayesian Deep Learning: The Application of
     Statistical Aggregation Methods to Bayesian Models. 2024. Figures 4 to 9.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, recorded

# Figures with several scores have one panel for each of these.
SCORES, NUMERIC_SCORES = (
  tuple(score.name for score in table if score.is_plotted)
  for table in (metrics.TABLE, metrics.REGRESSION)
)


def scores_of(run_dir: recorded.RunDir) -> tuple[str, ...]:
  """Returns the scores of a run that have a panel each."""
  return NUMERIC_SCORES if recorded.is_numeric(run_dir) else SCORES


MEASURES = {
  'normalized_entropy': 'Normalized entropy',
  'aleatoric_uncertainty': 'Aleatoric uncertainty',
  'epistemic_uncertainty': 'Epistemic uncertainty',
}

# An uncertainty with a smaller range over the examples is constant up to
# rounding.
NO_SPREAD = 1e-12

# Accuracy on a smaller fraction of examples is noise. It is drawn, but does not
# determine the limits of the axis.
MIN_RETAINED = 0.05


def learning_curve(
  runs: recorded.Runs,
  metric: str | Mapping[str, str] = 'accuracy',
  axes: Axes | None = None,
) -> Figure:
  """Draws a score by round.

  Args:
    runs: Run directories by the name in the legend, one or a list of seeds, or
      a single directory.
    metric: A column of `metrics.csv`, or one column for each name; rounds
      without a value are omitted.
  """
  read = recorded.named(runs)
  columns = dict.fromkeys(read, metric) if isinstance(metric, str) else metric
  axes = axes or canvas.panel((6.0, 4.0))
  for (name, seeds), style in zip(read.items(), canvas.styles(read)):
    rounds, values = recorded.metric_of_seeds(seeds, columns[name])
    # With many rounds, markers would hide the line.
    marker = 'o' if len(rounds) <= 25 else ''
    canvas.draw_seeds(axes, rounds, values, label=name, marker=marker, **style)
  title, unit = title_and_unit(next(iter(columns.values())))
  canvas.finish(
    axes, title, 'Communication round (0: before training)', unit or title
  )
  axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  axes.margins(x=0.02)
  canvas.legend_of_lines(axes)
  return canvas.figure_of(axes)


def title_and_unit(column: str) -> tuple[str, str]:
  """Returns the title and the unit of a column of `metrics.csv`."""
  if column == 'train_loss':
    return 'Training loss', 'Nats per example'
  score = metrics.find(column)
  if not score:
    return column, ''
  title, unit = (t[:1].upper() + t[1:] for t in (score.label, score.unit))
  return title, unit


def sweep(
  lines: Mapping[str, Mapping[float, Sequence[float]]], xlabel: str, ylabel: str
) -> Figure:
  """Draws the mean score over seeds by the value of a setting."""
  (axes,) = canvas.new_axes((5.6, 4.0))
  for (name, values), style in zip(lines.items(), canvas.styles(lines)):
    x = sorted(values)
    scores = [values[at] for at in x]
    canvas.draw_seeds(axes, x, scores, label=name, marker='o', **style)
  canvas.finish(axes, '', xlabel, ylabel)
  canvas.legend_of_lines(axes)
  return canvas.figure_of(axes)


def corruption(rows: Sequence[Mapping[str, Any]]) -> Figure:
  """Draws one panel per score, with one line per kind of corruption."""
  clean = [row for row in rows if not row['strength']]
  panels = canvas.new_axes((12.0, 3.9), 3, sharey=False)
  kinds = dict.fromkeys(row['kind'] for row in rows if row['strength'])
  for axes, column in zip(panels, SCORES):
    for kind, style in zip(kinds, canvas.styles(kinds)):
      line = [*clean, *(row for row in rows if row['kind'] == kind)]
      x, y = zip(*((row['strength'], row[column]) for row in line))
      axes.plot(x, y, marker='o', label=kind, **style)
    title, unit = title_and_unit(column)
    canvas.finish(axes, title, 'Strength (0: clean images)', unit)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  canvas.legend(panels[0])
  return canvas.figure_of(panels[0])


def retention(
  runs: recorded.Runs,
  axes: Sequence[Axes] | None = None,
  measures: Sequence[str] = tuple(MEASURES),
) -> Figure:
  """Draws accuracy by the fraction of least uncertain data retained.

  Returns:
    figure: One panel per measure, with lines as in `learning_curve`. The legend
      shows the area under a line, the mean accuracy over all fractions.
  """
  results = recorded.all_predictions(runs)
  if axes is None:
    height = 3.7 + 0.18 * len(results)
    axes = canvas.new_axes((11.0, height), columns=len(measures))
  for panel, measure in zip(axes, measures, strict=True):
    _retention_panel(panel, results, measure)
    title = f'By {MEASURES[measure].lower()}'
    canvas.finish(panel, title, 'Data retained (fraction)', '')
  axes[0].set_ylabel('Accuracy on retained data (fraction)', fontsize=10)
  _limit_accuracy(axes)
  return canvas.figure_of(axes[0])


def _retention_panel(axes, results, measure):
  """Draws one line per name."""
  for (name, seeds), style in zip(results.items(), canvas.styles(results)):
    curves = [_retention(result, measure) for result in seeds]
    area = np.mean([curve.area for curve in curves])
    accuracy = np.stack([curve.accuracy for curve in curves], axis=-1)
    label = f'{name} (area {area:.3f})'
    canvas.draw_seeds(axes, curves[0].retained, accuracy, label=label, **style)
  canvas.legend_below(axes)


def _retention(result, measure):
  correct = metrics.is_correct(result.probs, result.labels)
  uncertainty = result._asdict()[measure]
  if np.ptp(uncertainty) <= NO_SPREAD:
    uncertainty = np.zeros(correct.size)
  return metrics.retention_curve(uncertainty, correct)


def _limit_accuracy(panels):
  """Sets the same limits for all panels, without the noisy first examples."""
  lines = [line.get_xydata() for panel in panels for line in panel.lines]
  for panel in panels:
    # Bands over seeds.
    lines += [band.get_paths()[0].vertices for band in panel.collections]
  steady = [line[line[:, 0] >= MIN_RETAINED, 1] for line in lines]
  low, high = np.concatenate(steady).min(), np.concatenate(steady).max()
  pad = max(0.04 * (high - low), 0.005)
  for panel in panels:
    panel.set_xlim(0, 1)
    panel.set_ylim(low - pad, high + pad)
