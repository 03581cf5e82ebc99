"""Figures that compare settings by mean and range over seeds.

`Groups` contains the run directories of each setting, one per seed, by name.
"""

from collections.abc import Mapping, Sequence
import math
import re
import textwrap

from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, curves, recorded

Groups = Mapping[str, Sequence[recorded.RunDir]]
# Letters per inch of a legend, letters of a handle, inches per line.
_LETTERS, _HANDLE, _LINE = 13, 8, 0.17
# The fractional parts of its multiples are spread evenly.
_GOLDEN = 0.618
# Largest number of settings in one figure.
_MOST = 8
# Between the flags of a name such as 'pooling=nwa dirichlet.alpha=0.1'.
_BETWEEN = re.compile(r'[ ,](?=[\w.]+=)')


def learning_curves(groups: Groups) -> Figure:
  """Draws scores by round, one panel per score, with a band over seeds."""
  groups, title = _short(groups)
  panels = canvas.new_axes((12.0, 3.8), 3, sharey=False)
  first, *_ = next(iter(groups.values()))
  for axes, column in zip(panels, curves.scores_of(first)):
    curves.learning_curve(groups, column, axes)
  return _one_legend(panels, title)


def reliability(groups: Groups) -> Figure:
  """Draws accuracy minus confidence by confidence, one line per setting.

  A model is calibrated on the line at 0 and overconfident below it. All bins of
  a run have the same number of examples.
  """
  groups, title = _short(groups)
  (axes,) = canvas.new_axes((6.0, 3.8))
  results, styles = recorded.all_predictions(groups), canvas.styles(groups)
  for (name, seeds), style in zip(results.items(), styles):
    bins = [metrics.equal_bins(read.probs, read.labels) for read in seeds]
    # Bins are formed by rank, so confidences also differ between seeds.
    confidence = np.mean([each.confidence for each in bins], axis=0)
    gaps = np.transpose([each.accuracy - each.confidence for each in bins])
    canvas.draw_seeds(axes, confidence, gaps, label=name, marker='o', **style)
  axes.axhline(0, ls='--', c=canvas.GREY, lw=1.2)
  canvas.finish(
    axes,
    'Reliability',
    'Confidence (probability)',
    'Accuracy minus confidence (fraction)',
  )
  return _one_legend([axes], title)


def risk_coverage(groups: Groups) -> Figure:
  """Draws the accuracy of the least uncertain examples, by their fraction."""
  groups, title = _short(groups)
  (axes,) = canvas.new_axes((6.0, 3.8))
  curves.retention(groups, [axes], ['normalized_entropy'])
  return _one_legend([axes], title)


def personal_scores(groups: Groups) -> Figure:
  """Draws the accuracy of each client's own model, a column per setting.

  There is a dot for each client and seed, and a line at the mean. For numeric
  labels, the NLL is drawn.
  """
  groups, title = _short(groups)
  (axes,) = canvas.new_axes((max(4.0, 1.5 + 0.9 * len(groups)), 3.8))
  first, *_ = next(iter(groups.values()))
  score = 'accuracy' if recorded.personal(first, 'accuracy').size else 'nll'
  for place, (runs, style) in enumerate(
    zip(groups.values(), canvas.styles(groups))
  ):
    values = np.concatenate([recorded.personal(run, score) for run in runs])
    # Equal distances show how many clients have nearly the same score.
    order = np.argsort(np.argsort(values, kind='stable'))
    x = place + 0.6 * ((order * _GOLDEN) % 1 - 0.5)
    axes.plot(x, values, 'o', ms=3, alpha=0.5, color=style['color'])
    axes.plot([place - 0.35, place + 0.35], [values.mean()] * 2, c='k', lw=1.5)
  labels = [textwrap.fill(name, 14) for name in groups]
  axes.set_xticks(range(len(groups)), labels, fontsize=8)
  label = 'Accuracy (fraction)' if score == 'accuracy' else 'NLL (nats)'
  canvas.finish(axes, "Scores of the clients' own models", title, label)
  return canvas.figure_of(axes)


def facets(groups: Groups) -> dict[str, Groups]:
  """Divides many groups over several figures of at most eight groups each.

  Returns:
    The groups of each figure by the end of its file name.
  """
  if len(groups) <= _MOST:
    return {'': groups}
  pairs = [*groups.items()]
  parts = [pairs[at : at + _MOST] for at in range(0, len(pairs), _MOST)]
  return {f'_{number}': dict(part) for number, part in enumerate(parts, 1)}


def _short(groups: Groups) -> tuple[Groups, str]:
  """Returns groups by the values of their flags, and the flags as a title.

  Names that are not lists of the same flags stay as they are.
  """
  cells = [
    [part.partition('=') for part in _BETWEEN.split(name)] for name in groups
  ]
  flags = {', '.join(flag for flag, _, _ in cell) for cell in cells}
  values = [', '.join(value for _, _, value in cell) for cell in cells]
  if len(flags) > 1 or not all(values) or len({*values}) < len(values):
    return groups, ''
  return dict(zip(values, groups.values())), flags.pop()


def _one_legend(panels: Sequence[Axes], title: str) -> Figure:
  """Puts one legend below all panels; the figure grows by its height."""
  figure = canvas.figure_of(panels[0])
  handles, labels = panels[0].get_legend_handles_labels()
  if panels[0].collections:
    handles.append(patches.Patch(color=canvas.GREY, alpha=0.18, lw=0))
    labels.append('Band: lowest to highest seed')
  width = int(_LETTERS * figure.get_figwidth())
  title, *labels = [textwrap.fill(text, width) for text in (title, *labels)]
  for axes in panels:
    if own := axes.get_legend():
      own.remove()
  longest = max(map(len, labels)) + _HANDLE
  columns = min(len(labels), max(1, width // longest))
  figure.legend(
    handles, labels, loc='outside lower center', fontsize=8.5, frameon=False,
    ncols=columns, title=title or None,
  )  # fmt: skip
  rows = ('\n'.join(labels).count('\n') + 1) / columns
  num_lines = math.ceil(rows) + len(title.splitlines())
  figure.set_figheight(figure.get_figheight() + _LINE * num_lines)
  return figure
