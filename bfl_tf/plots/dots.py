"""A figure of scores per site or class, as dots."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf.plots import canvas

_MAX_NAMES = 40


def dots(
  rows: Mapping[str, Mapping[str, float]],
  xlabel: str,
  title: str = '',
  targets: Mapping[str, float] | None = None,
  axes: Axes | None = None,
) -> Figure:
  """Draws a row of dots for each name, with the lowest score at the bottom.

  A solid line shows the mean of a score, and a dashed line its target.
  """
  scores = [*dict.fromkeys(key for row in rows.values() for key in row)]
  names = sorted(rows, key=lambda name: rows[name].get(scores[0], np.inf))
  height = 1.7 + 0.24 * min(len(names), _MAX_NAMES) + 0.2 * len(scores)
  axes = axes or canvas.panel((6.0, height))
  drawn = [value for row in rows.values() for value in row.values()]
  for at, (score, style) in enumerate(zip(scores, canvas.styles(scores))):
    values, places = zip(*(
      (rows[n][score], i) for i, n in enumerate(names) if score in rows[n]
    ))  # fmt: skip
    color, mean = style['color'], float(np.mean(values))
    # Larger hollow dots keep dots of equal scores visible.
    fill: dict[str, Any] = {'mfc': 'none', 'mew': 1.4} if at else {}
    label = f'{score} (mean {mean:.3f})'
    axes.plot(values, places, 'o', ms=5 + 4 * at, c=color, label=label, **fill)
    axes.axvline(mean, c=color, lw=1)
    if targets and score in targets:
      axes.axvline(targets[score], c=color, lw=1, ls='--')
      drawn.append(targets[score])
  canvas.finish(axes, title, xlabel, '')
  pad = max(0.02, 0.05 * (max(drawn) - min(drawn)))
  axes.set_xlim(min(drawn) - pad, max(drawn) + pad)
  if len(names) <= _MAX_NAMES:
    axes.set_yticks(range(len(names)), names)
    for text in axes.get_yticklabels():
      text.set_parse_math(False)  # A name may contain dollar signs.
  else:
    axes.set_ylabel(f'{len(names)} sites, by rank', fontsize=10)
  axes.set_ylim(-0.7, len(names) - 0.3)
  below = -0.45 / (canvas.figure_of(axes).get_figheight() - 1)
  canvas.legend_below(axes, ncols=2, bbox_to_anchor=(0.5, below))
  return canvas.figure_of(axes)
