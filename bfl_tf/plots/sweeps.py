"""A score against a setting."""

from collections.abc import Mapping, Sequence

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib

from bfl_tf.plots import canvas


def sweep(
  lines: Mapping[str, Mapping[float, Sequence[float]]],
  xlabel: str,
  ylabel: str = 'Accuracy (%)',
  title: str = '',
  axes: axes_lib.Axes | None = None,
) -> figure_lib.Figure:
  """Draws the mean over seeds against a setting.

  Args:
    lines: by name and by the setting's value, a score a seed.
    xlabel: what the setting is.
    ylabel: what the score is.
    title: of the axes.

  Returns:
    figure: one line a name, in a band from the lowest to the highest seed.
  """
  if axes is None:
    (axes,) = canvas.new_axes((5.6, 4.0))
  for (name, values), style in zip(lines.items(), canvas.styles(len(lines))):
    x = sorted(values)
    scores = [values[at] for at in x]
    canvas.draw_seeds(axes, x, scores, label=name, marker='o', **style)
  canvas.finish(axes, title, xlabel, ylabel)
  canvas.legend_of_lines(axes)
  return canvas.figure_of(axes)
