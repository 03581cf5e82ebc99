"""The look that all figures share.

Properties are set on each figure, never on matplotlib's global state, so that
figures can be drawn in threads and beside a user's own.
"""

from collections.abc import Sequence
import itertools
from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib

DPI = 150

# Okabe and Ito's palette, told apart under every colour blindness; without its
# yellow, too pale on white.
PALETTE = (
  '#0072B2',
  '#D55E00',
  '#009E73',
  '#CC79A7',
  '#E69F00',
  '#56B4E9',
  '#000000',
)
BLUE, VERMILION, SKY = PALETTE[0], PALETTE[1], PALETTE[5]
GREY = '#666666'


def new_axes(
  size: tuple[float, float], columns: int = 1
) -> Sequence[axes_lib.Axes]:
  """Returns the axes, side by side, of a new figure of `size` inches."""
  return new_figure(size).subplots(1, columns, sharey=True, squeeze=False)[0]


def new_figure(size: tuple[float, float]) -> figure_lib.Figure:
  """Returns an empty figure of `size` inches."""
  return figure_lib.Figure(figsize=size, dpi=DPI, layout='constrained')


def figure_of(axes: axes_lib.Axes) -> figure_lib.Figure:
  """Returns the figure that `axes` belong to, also from a subfigure."""
  figure = axes.get_figure(root=True)
  if figure is None:
    raise ValueError('axes must belong to a figure.')
  return figure


def styles() -> Any:
  """Yields line styles that differ in colour first, then in dashes."""
  for dashes, color in itertools.product(('-', '--', ':', '-.'), PALETTE):
    yield {'color': color, 'linestyle': dashes, 'linewidth': 1.6}
  raise ValueError('Too many runs for one figure: at most 28 are told apart.')


def finish(axes: axes_lib.Axes, title: str, xlabel: str, ylabel: str) -> None:
  """Labels the axes; a light grid behind, no box around."""
  axes.set_title(title, fontsize=11)
  axes.set_xlabel(xlabel, fontsize=10)
  axes.set_ylabel(ylabel, fontsize=10)
  axes.tick_params(labelsize=9)
  axes.grid(True, color='#dddddd', linewidth=0.6)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)


def legend(axes: axes_lib.Axes, **options: Any) -> None:
  """Adds a legend where it hides least."""
  look = {'fontsize': 8.5, 'framealpha': 0.85, 'edgecolor': '#cccccc'}
  axes.legend(**(look | options))


def legend_below(axes: axes_lib.Axes, **options: Any) -> None:
  """Adds a legend under the x label, where it hides nothing."""
  anchor = {'loc': 'upper center', 'bbox_to_anchor': (0.5, -0.16)}
  legend(axes, frameon=False, borderaxespad=0, **(anchor | options))
