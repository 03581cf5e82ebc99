"""Common style of all figures.

Styles are set per figure, never in matplotlib's global state. So figures can be
drawn in threads, and a user's figures do not change.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

DPI = 150

# Okabe and Ito's palette for color-blind readers, without its yellow, which is
# too pale on white.
PALETTE = (
  '#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000',
)  # fmt: skip
# Only one solid line, because it hides lines below. Eight dashes and seven
# colors have no common factor, so 56 lines differ.
_DASHES = (
  '-', '--', '-.', ':', (0, (7, 2)), (0, (5, 2, 1, 2, 1, 2)), (0, (2, 2)),
  (0, (9, 3, 2, 3)),
)  # fmt: skip
_THICK, _THIN = 3.2, 1.4
# With more lines, a legend inside the axes would hide them.
_MOST_INSIDE = 6
BLUE, VERMILION, SKY = PALETTE[0], PALETTE[1], PALETTE[5]
GREY = '#666666'


def new_axes(
  size: tuple[float, float], columns: int = 1, **options: Any
) -> Sequence[Axes]:
  """Returns axes side by side in a new figure of `size` inches."""
  look = {'sharey': True, 'squeeze': False}
  return new_figure(size).subplots(1, columns, **(look | options))[0]


def panel(size: tuple[float, float]) -> Axes:
  """Returns the axes of a new figure of `size` inches."""
  return new_axes(size)[0]


def new_figure(size: tuple[float, float]) -> Figure:
  """Returns an empty figure of `size` inches."""
  return Figure(figsize=size, dpi=DPI, layout='constrained')


def figure_of(axes: Axes) -> Figure:
  """Returns the top-level figure of `axes`, also from a subfigure."""
  figure: Any = axes.get_figure(root=True)
  return figure


def styles(names: Collection[str]) -> Iterator[dict[str, Any]]:
  """Yields one line style per name.

  In a full grid of names such as 'nwa, 0.1', the color shows the first value
  and the dashes show the others. Otherwise, each line has its own color and
  dashes. Each line is thinner than the one below it, so that coincident lines
  stay visible.
  """
  parts = [tuple(name.split(', ', 1)) for name in names]
  axes = [list(dict.fromkeys(values)) for values in zip(*parts)]
  is_grid = len(axes) == 2 and min(map(len, axes)) > 1
  if is_grid and len(axes[0]) * len(axes[1]) == len(parts):
    places = [[axis.index(v) for axis, v in zip(axes, p)] for p in parts]
  else:
    places = [[number, number] for number in range(len(parts))]
  widths = np.linspace(_THICK, _THIN, len(parts)) if len(parts) > 1 else [1.6]
  for (color, dashes), width in zip(places, widths):
    yield {
      'color': PALETTE[color % len(PALETTE)],
      'linestyle': _DASHES[dashes % len(_DASHES)],
      'linewidth': float(width),
      'markersize': float(1.6 * width + 1),
    }


def draw_seeds(
  axes: Axes,
  x: Sequence[float] | np.ndarray,
  scores: Sequence[Sequence[float]] | np.ndarray,
  **style: Any,
) -> None:
  """Draws the mean over seeds, and a band from the lowest to the highest.

  The scores of each point, one per seed, may differ in their number.
  """
  axes.plot(x, [np.mean(each) for each in scores], **style)
  if any(len(each) > 1 for each in scores):
    ends = [min(each) for each in scores], [max(each) for each in scores]
    axes.fill_between(x, *ends, color=style['color'], alpha=0.18, lw=0)


def finish(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
  """Labels the axes, adds a light grid and removes the box."""
  axes.set_title(title, fontsize=11)
  axes.set_xlabel(xlabel, fontsize=10)
  axes.set_ylabel(ylabel, fontsize=10)
  axes.tick_params(labelsize=9)
  axes.grid(True, color='#dddddd', linewidth=0.6)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)


def legend(axes: Axes, **options: Any) -> None:
  """Adds a legend at matplotlib's best place."""
  look = {'fontsize': 8.5, 'framealpha': 0.85, 'edgecolor': '#cccccc'}
  axes.legend(**(look | options))


def legend_of_lines(axes: Axes) -> None:
  """Adds a legend to a single panel, below the x label if lines are many."""
  if len(axes.get_legend_handles_labels()[1]) > _MOST_INSIDE:
    legend_below(axes, ncols=3)
  else:
    legend(axes)


def legend_below(axes: Axes, **options: Any) -> None:
  """Adds a legend below the x label."""
  anchor = {'loc': 'upper center', 'bbox_to_anchor': (0.5, -0.16)}
  legend(axes, frameon=False, borderaxespad=0, **(anchor | options))
