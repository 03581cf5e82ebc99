"""Points of the plane, a colour a class."""

from collections.abc import Mapping

from matplotlib import figure as figure_lib
import numpy as np

from bfl_tf.plots import canvas

_MARKERS = 'o^s'


def points(
  groups: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> figure_lib.Figure:
  """Draws labelled points, a panel a group, all at one scale.

  Args:
    groups: by title, coordinates `[num_points, 2]` and integer classes
      `[num_points]`, from 0 to 20.

  Returns:
    figure: those of a class look alike in all panels.
  """
  figure = figure_lib.Figure(
    (3.9 * len(groups), 4.6), dpi=canvas.DPI, layout='compressed'
  )
  panels = figure.subplots(
    1, len(groups), squeeze=False, sharex=True, sharey=True
  )[0]
  handles = {}
  for axes, (title, (coordinates, labels)) in zip(panels, groups.items()):
    for c in np.unique(labels).tolist():
      handles[c] = _draw(axes, coordinates[labels == c], c)
    axes.set_title(title, fontsize=11)
    axes.set(aspect='equal', xticks=[], yticks=[])
  figure.legend(
    handles=[handles[c] for c in sorted(handles)], loc='outside lower center',
    ncols=5, fontsize=9, frameon=False, markerscale=1.6,
  )  # fmt: skip
  return figure


def _draw(axes, coordinates, c):
  row, column = divmod(c, len(canvas.PALETTE))
  look = {'color': canvas.PALETTE[column], 'marker': _MARKERS[row]}
  return axes.scatter(
    *coordinates.T, s=11, linewidths=0, label=f'class {c}', **look
  )
