"""Scores against the strength of a corruption."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import figure as figure_lib
from matplotlib import ticker

from bfl_tf.plots import canvas, curves


def corruption(
  rows: Sequence[Mapping[str, Any]],
  columns: Sequence[str] = ('accuracy', 'nll', 'ece'),
) -> figure_lib.Figure:
  """Draws a panel a score, a line a kind of corruption.

  Args:
    rows: with `kind`, `strength` and the columns; of strength 0 the clean one.
    columns: the scores.
  """
  clean = [row for row in rows if not row['strength']]
  figure = canvas.new_figure((4.0 * len(columns), 3.9))
  panels = figure.subplots(1, len(columns), squeeze=False)[0]
  kinds = dict.fromkeys(row['kind'] for row in rows if row['strength'])
  for axes, column in zip(panels, columns):
    for kind, style in zip(kinds, canvas.styles(len(kinds))):
      line = [*clean, *(row for row in rows if row['kind'] == kind)]
      x, y = zip(*((row['strength'], row[column]) for row in line))
      axes.plot(x, y, marker='o', label=kind, **style)
    title, unit = curves.LABELS.get(column, (column, ''))
    canvas.finish(axes, title, 'Strength (0: as they are)', unit)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  canvas.legend(panels[0])
  return figure
