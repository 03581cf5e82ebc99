"""Figures of the partition: examples per client and class."""

from matplotlib import collections, colormaps, colors, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf.plots import canvas, recorded

# Side lengths of the largest and the smallest box, in cells.
MAX_SIDE, MIN_SIDE = 0.94, 0.14

MAX_TICKS = 20


def partition(run_dir: recorded.RunDir, axes: Axes | None = None) -> Figure:
  """Draws a box per client and class: its area is the number of examples.

  Returns:
    figure: Clients on the x axis, classes on the y axis. The color also shows
      the number of examples. Boxes have a minimum size; no examples, no box.
  """
  table = recorded.partition(run_dir)
  num_clients, num_classes = table.counts.shape
  width = np.clip(1.6 + 0.32 * num_clients, 4.2, 12.0)
  height = np.clip(1.0 + 0.32 * num_classes, 2.2, 10.5)
  axes = axes or canvas.panel((width, height))
  boxes = axes.add_collection(_boxes(table.counts))
  title = f'{table.counts.sum():,} examples on {num_clients} clients'
  canvas.finish(axes, title, 'Client', 'Class')
  axes.set(xlim=(-0.5, num_clients - 0.5), ylim=(-0.5, num_classes - 0.5))
  _name_ticks(axes.xaxis, table.clients)
  _name_ticks(axes.yaxis, table.classes)
  figure = canvas.figure_of(axes)
  bar = figure.colorbar(boxes, ax=axes, pad=0.02, aspect=35)
  bar.set_label('Examples in a box', fontsize=9)
  bar.ax.tick_params(labelsize=8)
  bar.ax.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
  return figure


def sizes(run_dir: recorded.RunDir, axes: Axes | None = None) -> Figure:
  """Draws the number of examples of each client, with stacked classes."""
  table = recorded.partition(run_dir)
  num_clients, num_classes = table.counts.shape
  width = np.clip(2.4 + 0.4 * num_clients, 4.8, 12.0)
  axes = axes or canvas.panel((width, 4.0))
  shades = colormaps['viridis'](np.linspace(0, 0.95, num_classes))
  below = np.zeros(num_clients)
  for name, counts, shade in zip(table.classes, table.counts.T, shades):
    axes.bar(
      np.arange(num_clients), counts, bottom=below, color=shade, label=name
    )
    below += counts
  title = f'{table.counts.sum():,} examples on {num_clients} clients'
  canvas.finish(axes, title, 'Client', 'Examples')
  _name_ticks(axes.xaxis, table.clients)
  if num_classes <= MAX_TICKS:
    canvas.legend(axes, title='Class', ncols=2, reverse=True)
  return canvas.figure_of(axes)


def _boxes(counts):
  cells = np.nonzero(counts)
  largest = max(counts.max(), 1)
  sides = np.maximum(MAX_SIDE * np.sqrt(counts[cells] / largest), MIN_SIDE)
  corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
  shapes = np.stack(cells, axis=-1)[:, None] + sides[:, None, None] * corners
  blues = colormaps['Blues'](np.linspace(0.35, 1, 256))
  return collections.PolyCollection(
    shapes,
    array=counts[cells],
    cmap=colors.ListedColormap(blues),
    norm=colors.Normalize(0, largest),
    linewidths=0,
  )


def _name_ticks(axis, names):

  def name(position, _):
    whole = 0 <= position < len(names) and position == int(position)
    return names[int(position)] if whole else ''

  steps = max(min(len(names), MAX_TICKS), 2)
  axis.set_major_locator(ticker.MaxNLocator(steps, integer=True))
  axis.set_major_formatter(ticker.FuncFormatter(name))
