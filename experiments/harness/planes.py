"""Figures of points in a plane: embeddings, samples and model combinations.

#### References

[1]: Mehdi Makni. Deriving FL-SWAG as a one-shot method. 2022, section 6.
[2]: Hong-You Chen, Wei-Lun Chao. FedBE: Making Bayesian Model Ensemble
     Applicable to Federated Learning. _ICLR_, 2021. Figures 1 and 9.
"""

from collections.abc import Mapping

from matplotlib.figure import Figure
import numpy as np
from scipy import ndimage

from bfl_tf.plots import canvas

_GRID = 60
_SMOOTH = 2.0  # Cells.
_MARKERS = 'o^s'


def principal(samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Projects samples onto the first two principal components of all samples.

  Args:
    samples: Samples by name, `[num_samples, dimension]`.

  Returns:
    Projections by name, `[num_samples, 2]`.
  """
  joined = np.concatenate([*samples.values()]).astype(np.float64)
  centre = joined.mean(0)
  _, _, rows = np.linalg.svd(joined - centre, full_matrices=False)
  return {name: (s - centre) @ rows[:2].T for name, s in samples.items()}


def plane(points: Mapping[str, np.ndarray]) -> Figure:
  """Draws points in one panel per sampler, with the same limits [1].

  Args:
    points: Points by name, `[num_samples, 2]`.
  """
  size = (4.4 * len(points), 4.2)
  panels = canvas.new_axes(size, len(points), sharex=True)
  for axes, (name, found), color in zip(panels, points.items(), canvas.PALETTE):
    axes.plot(*found.T, 'o', ms=2.5, alpha=0.5, c=color, mew=0)
    title = f'{name}: {len(found):,} draws'
    canvas.finish(axes, title, 'First principal component', '')
  panels[0].set_ylabel('Second principal component', fontsize=10)
  return canvas.figure_of(panels[0])


def surface(points: Mapping[str, np.ndarray]) -> Figure:
  """Draws the smoothed density of points in one panel per sampler [1].

  Args:
    points: Points by name, `[num_samples, 2]`.
  """
  figure = canvas.new_figure((4.8 * len(points), 4.4))
  joined = np.concatenate([*points.values()])
  spans = np.percentile(joined, [0.5, 99.5], axis=0).T
  edges = [np.linspace(low, high, _GRID + 1) for low, high in spans]
  grid = np.meshgrid(*((e[:-1] + e[1:]) / 2 for e in edges), indexing='ij')
  for number, (name, found) in enumerate(points.items(), start=1):
    axes = figure.add_subplot(1, len(points), number, projection='3d')
    counts, _, _ = np.histogram2d(found[:, 0], found[:, 1], edges)
    # Samples on a line have no kernel density, so a histogram is smoothed.
    height = ndimage.gaussian_filter(counts / len(found), _SMOOTH)
    axes.plot_surface(*grid, height, cmap='viridis', lw=0)
    axes.set_title(name, fontsize=11)
    axes.set_xlabel('Component 1', fontsize=9)
    axes.set_ylabel('Component 2', fontsize=9)
    axes.tick_params(labelsize=7)
  return figure


def points(groups: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
  """Draws labeled points in one panel per group, with the same limits.

  Args:
    groups: Coordinates `[num_points, 2]` and integer classes `[num_points]`
      from 0 to 20, by title.

  Returns:
    figure: The figure; a class has the same style in all panels.
  """
  figure = Figure((3.9 * len(groups), 4.6), dpi=canvas.DPI, layout='compressed')
  panels = figure.subplots(
    1, len(groups), squeeze=False, sharex=True, sharey=True
  )[0]
  handles = {}
  for axes, (title, (coordinates, labels)) in zip(panels, groups.items()):
    for c in np.unique(labels).tolist():
      row, column = divmod(c, len(canvas.PALETTE))
      handles[c] = axes.scatter(
        *coordinates[labels == c].T, s=11, linewidths=0, label=f'class {c}',
        color=canvas.PALETTE[column], marker=_MARKERS[row],
      )  # fmt: skip
    axes.set_title(title, fontsize=11)
    axes.set(aspect='equal', xticks=[], yticks=[])
  figure.legend(
    handles=[handles[c] for c in sorted(handles)], loc='outside lower center',
    ncols=5, fontsize=9, frameon=False, markerscale=1.6,
  )  # fmt: skip
  return figure


def simplex(coefficients: np.ndarray, accuracy: np.ndarray) -> Figure:
  """Draws convex combinations of three models, colored by accuracy [2].

  Args:
    coefficients: `[num_models, 3]`, rows that sum to 1; a corner is a client.
    accuracy: `[num_models]`, in [0, 1].

  Returns:
    figure: A triangle of points; a star marks the best one, a cross the center.
  """
  (axes,) = canvas.new_axes((5.4, 4.4))
  corners = np.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])
  points = coefficients @ corners
  x, y = points.T
  shown = axes.scatter(x, y, c=accuracy, s=14, cmap='viridis')
  best = points[accuracy.argmax()]
  axes.plot(*np.vstack([corners, corners[:1]]).T, color=canvas.GREY, lw=1)
  # A hollow star keeps the point and its color visible.
  axes.plot(
    *best, marker='*', ms=24, mfc='none', mec=canvas.VERMILION, mew=1.6, ls='',
    label=f'Best: {accuracy.max():.3f}',
  )  # fmt: skip
  centre = corners.mean(0)
  axes.plot(*centre, 'kx', ms=9, mew=2, label='Average')
  for k, (corner, dx, dy) in enumerate(
    zip(corners, (-0.02, 0.02, 0), (-0.06, -0.06, 0.03))
  ):
    x, y = corner + (dx, dy)
    axes.text(x, y, f'client {k + 1}', ha='center', fontsize=9)
  canvas.figure_of(axes).colorbar(shown, ax=axes, label='Test accuracy')
  axes.set_title('Combinations of the clients', fontsize=11)
  axes.set(aspect='equal', xlim=(-0.1, 1.1), ylim=(-0.12, 1.0))
  axes.axis('off')
  canvas.legend(axes, loc='upper left', markerscale=0.6)
  return canvas.figure_of(axes)
