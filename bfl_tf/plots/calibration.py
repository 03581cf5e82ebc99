"""Figures of calibration, of classes and of numbers.

#### References

[1]: Chuan Guo et al. On Calibration of Modern Neural Networks. _ICML_, 2017.
[2]: Mehdi Makni. Deriving FL-SWAG as a one-shot method. 2022, section 8.3.
[3]: Hong-You Chen, Wei-Lun Chao. FedBE: Making Bayesian Model Ensemble
     Applicable to Federated Learning. _ICLR_, 2021. Figures 1 and 9.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from bfl_tf import metrics
from bfl_tf.plots import canvas, recorded

# Least fraction of the examples in a bin that `calibration_gap` draws.
_LEAST_SHARE = 1e-3
_RIGHT: dict[str, Any] = {'color': canvas.BLUE, 'label': 'Right'}
_WRONG: dict[str, Any] = {
  'color': canvas.VERMILION, 'hatch': '///', 'label': 'Wrong',
}  # fmt: skip
# Names of the groups in members.npz.
_GROUPS = {'A': 'average', 'C': 'clients', 'S': 'samples'}


def reliability_diagram(
  run_dir: recorded.RunDir, num_bins: int = 15, axes: Axes | None = None
) -> Figure:
  """Draws accuracy by confidence; the ECE is the mean gap."""
  read = recorded.predictions(run_dir)
  bins = metrics.reliability(read.probs, read.labels, num_bins)
  return reliability_bars(bins, axes)


def reliability_bars(
  bins: metrics.Reliability, axes: Axes | None = None
) -> Figure:
  """Draws a reliability diagram from existing bins."""
  axes = axes or canvas.panel((4.6, 5.0))
  filled = bins.counts > 0
  lefts, tops = bins.edges[:-1][filled], bins.accuracy[filled]
  widths, gaps = np.diff(bins.edges)[filled], bins.confidence[filled] - tops
  axes.bar(
    lefts, tops, widths, align='edge', color=canvas.SKY, ec='white',
    label='Accuracy',
  )  # fmt: skip
  axes.bar(
    lefts, gaps, widths, tops, align='edge', color='none', ec=canvas.VERMILION,
    hatch='////', label='Gap to mean confidence',
  )  # fmt: skip
  axes.plot([0, 1], [0, 1], '--', c=canvas.GREY, lw=1.2, label='Calibrated')
  error = bins.expected_calibration_error
  title = (
    f'ECE {error:.4f}, {len(bins.counts)} bins, {bins.counts.sum():,} examples'
  )
  canvas.finish(axes, title, 'Confidence (probability)', 'Accuracy (fraction)')
  axes.set(xlim=(0, 1), ylim=(0, 1), aspect='equal')
  canvas.legend_below(axes, ncols=3, bbox_to_anchor=(0.5, -0.12))
  return canvas.figure_of(axes)


def risk_curves(
  groups: Mapping[str, Sequence[tuple[float, int, int]]], event: str
) -> Figure:
  """Draws the observed fraction of an event by its risk, a panel per site."""
  from scipy import stats  # It takes half a second.

  some = list(groups.items())[:7]
  columns = min(4, len(some))
  rows = -(-len(some) // columns)
  figure = canvas.new_figure((2.4 * columns, 0.6 + 2.6 * rows))
  largest = max(max(m, e / n) for _, points in some for m, e, n in points)
  top = min(1.0, 1.15 * largest + 0.05)
  for place, (name, points) in enumerate(some, start=1):
    axes = figure.add_subplot(rows, columns, place)
    axes.plot([0, 1], [0, 1], '--', c=canvas.GREY, lw=1.2)
    for mean, events, size in points:
      ends = stats.binomtest(events, size).proportion_ci(method='wilson')
      axes.plot([mean] * 2, ends, c=canvas.SKY, lw=2.5)
      axes.plot(mean, events / size, 'o', c=canvas.BLUE, ms=5)
    total = sum(size for *_, size in points)
    canvas.finish(axes, f'{name} ({total})', '', '')
    axes.set(xlim=(0, top), ylim=(0, top), aspect='equal')
  figure.supxlabel(f'Risk of {event}', fontsize=10)
  figure.supylabel(f'Observed fraction of {event}', fontsize=10)
  return figure


def confidence_histogram(
  run_dir: recorded.RunDir, num_bins: int = 15, axes: Axes | None = None
) -> Figure:
  """Draws a histogram of the confidence of correct and wrong predictions."""
  read = recorded.predictions(run_dir)
  bins = metrics.reliability(read.probs, read.labels, num_bins)
  axes = axes or canvas.panel((5.6, 4.2))
  bars: Any = {'width': 1 / num_bins, 'align': 'edge', 'ec': 'white'}
  lefts, total = bins.edges[:-1], read.labels.size
  # Wrong predictions are usually few and easier to read at the bottom.
  wrong, right = (bins.counts - bins.right) / total, bins.right / total
  axes.bar(lefts, wrong, **bars, **_WRONG)
  axes.bar(lefts, right, bottom=wrong, **bars, **_RIGHT)
  for name, value, dashes in (
    ('Accuracy', bins.right.sum() / total, '-'),
    ('Mean confidence', read.probs.max(-1).mean(), '--'),
  ):
    label = f'{name} {value:.3f}'
    axes.axvline(value, color='black', ls=dashes, lw=1.3, label=label)
  canvas.finish(
    axes,
    f'Confidence of {total:,} predictions',
    'Confidence (probability)',
    'Fraction of predictions',
  )
  axes.set_xlim(0, 1)
  canvas.legend_below(axes, ncols=2)
  return canvas.figure_of(axes)


def member_confidence(
  run_dir: recorded.RunDir,
  groups: tuple[str, ...] = ('C', 'S'),
  num_bins: int = 10,
) -> Figure:
  """Draws right and wrong predictions by confidence, a panel per group [3]."""
  panels = canvas.new_axes((4.2 * len(groups), 3.9), columns=len(groups))
  for axes, group in zip(panels, groups):
    confidence, correct = recorded.members(run_dir, group)
    for chosen, look, place in (
      (correct, _RIGHT, 0.29),
      (~correct, _WRONG, 0.71),
    ):
      counts, edges = np.histogram(confidence[chosen], num_bins, (0, 1))
      x, width = edges[:-1] + place / num_bins, 0.42 / num_bins
      axes.bar(x, counts / correct.size, width, ec='white', **look)
    title = f'{len(correct)} {_GROUPS.get(group, group)}'
    text = f'{title}: mean accuracy {correct.mean():.3f}'
    canvas.finish(axes, text, 'Confidence (probability)', '')
    axes.set_xlim(0, 1)
  panels[0].set_ylabel('Fraction of predictions', fontsize=10)
  canvas.legend(panels[-1])
  return canvas.figure_of(panels[0])


def calibration_gap(
  runs: recorded.Runs, num_bins: int = 15, axes: Axes | None = None
) -> Figure:
  """Draws accuracy minus confidence by confidence [2].

  There is one line per name, overconfident below 0, with the ECE in the legend.
  Bins with less than a thousandth of the examples are not drawn, because their
  noise would set the scale of the axis.
  """
  axes, lines = _lines_over_zero(runs, axes)
  for name, probs, labels, style in lines:
    bins = metrics.reliability(probs, labels, num_bins)
    shown = bins.counts >= max(1, _LEAST_SHARE * len(labels))
    label = f'{name} (ECE {bins.expected_calibration_error:.4f})'
    gaps = (bins.accuracy - bins.confidence)[shown]
    axes.plot(bins.confidence[shown], gaps, marker='o', label=label, **style)
  canvas.finish(
    axes,
    'Calibration by confidence',
    'Confidence (probability)',
    'Accuracy minus confidence (fraction)',
  )
  canvas.legend_below(axes, ncols=2)
  return canvas.figure_of(axes)


def calibration_above(runs: recorded.Runs, axes: Axes | None = None) -> Figure:
  """Draws accuracy minus mean confidence of predictions above a confidence."""
  axes, lines = _lines_over_zero(runs, axes)
  for name, probs, labels, style in lines:
    axes.plot(*metrics.gap_above(probs, labels), label=name, **style)
  canvas.finish(
    axes,
    'Calibration above a confidence',
    'Smallest confidence (probability)',
    'Accuracy minus mean confidence (fraction)',
  )
  axes.set_xlim(0, 1)
  canvas.legend_below(axes, ncols=2)
  return canvas.figure_of(axes)


def _lines_over_zero(runs, axes):
  """Returns axes with a line at 0, and the examples of all seeds by name."""
  results = recorded.all_predictions(runs)
  axes = axes or canvas.panel((5.6, 4.2))
  axes.axhline(0, color=canvas.GREY, lw=1.2, ls='--')
  return axes, [
    (
      name,
      np.concatenate([read.probs for read in seeds]),
      np.concatenate([read.labels for read in seeds]),
      style,
    )
    for (name, seeds), style in zip(results.items(), canvas.styles(results))
  ]


def predicted_numbers(
  run_dir: recorded.RunDir, axes: Axes | None = None
) -> Figure:
  """Draws predictive means with central 90 % intervals, by label."""
  read = recorded.numeric_predictions(run_dir)
  axes = axes or canvas.panel((5.0, 4.4))
  half = metrics.half_width(0.9) * read.scale
  axes.errorbar(
    read.labels, read.mean, half, fmt='o', ms=3, lw=0.8, alpha=0.6,
    c=canvas.BLUE, label='mean and 90% interval',
  )  # fmt: skip
  ends = [np.min(read.labels), np.max(read.labels)]
  axes.plot(ends, ends, '--', c=canvas.GREY, label='prediction = label')
  canvas.finish(axes, 'Predictions', 'Label', 'Prediction')
  canvas.legend_of_lines(axes)
  return canvas.figure_of(axes)


def pit_histogram(
  run_dir: recorded.RunDir, num_bins: int = 15, axes: Axes | None = None
) -> Figure:
  """Draws the histogram of P(prediction <= label).

  It is flat if predictions are calibrated, U-shaped if they are overconfident,
  and has a hump in the middle if they are underconfident.
  """
  values = metrics.pit(recorded.numeric_predictions(run_dir))
  return pit_bars(np.histogram(values, num_bins, (0, 1))[0], axes)


def pit_bars(counts: np.ndarray, axes: Axes | None = None) -> Figure:
  """Draws the histogram of `pit_histogram` from its counts `[num_bins]`."""
  axes = axes or canvas.panel((5.0, 4.0))
  size = len(counts)
  axes.bar(
    np.arange(size) / size, counts * size / counts.sum(), 1 / size,
    align='edge', color=canvas.SKY, ec='white',
  )  # fmt: skip
  axes.axhline(1, ls='--', c=canvas.GREY)
  canvas.finish(
    axes,
    'Calibration: probability integral transform',
    'P(prediction ≤ label)',
    'Density',
  )
  return canvas.figure_of(axes)
