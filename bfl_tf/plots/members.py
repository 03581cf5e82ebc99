"""A round's models one by one: how sure and how right each is (FedBE).

#### References

[1]: Hong-You Chen, Wei-Lun Chao. FedBE: Making Bayesian Model Ensemble
     Applicable to Federated Learning. _ICLR_, 2021. Figures 1 and 9.
"""

from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
import numpy as np

from bfl_tf.plots import canvas, recorded

GROUPS = {'A': 'average', 'C': 'clients', 'S': 'samples'}


def member_confidence(
  run_dir: recorded.RunDir,
  groups: tuple[str, ...] = ('C', 'S'),
  num_bins: int = 10,
) -> figure_lib.Figure:
  """Draws right and wrong predictions by confidence, a panel a group [1].

  Args:
    run_dir: holds `members.npz`.
    groups: of A, C, S.
    num_bins: of equal width.

  Returns:
    figure: bars of the mean over a group's members, as fractions of the
      examples.
  """
  panels = canvas.new_axes((4.2 * len(groups), 3.9), columns=len(groups))
  for axes, group in zip(panels, groups):
    confidence, correct = recorded.members(run_dir, group)
    edges = np.linspace(0, 1, num_bins + 1)
    width = 1 / num_bins
    looks: tuple[dict[str, Any], ...] = (
      {'color': canvas.BLUE, 'label': 'Right'},
      {'color': canvas.VERMILION, 'label': 'Wrong', 'hatch': '///'},
    )
    for chosen, look, place in zip((correct, ~correct), looks, (0.29, 0.71)):
      counts, _ = np.histogram(confidence[chosen], edges)
      shift = place * width
      axes.bar(
        edges[:-1] + shift, counts / correct.size, 0.42 * width, ec='white',
        **look,
      )  # fmt: skip
    title = f'{len(correct)} {GROUPS.get(group, group)}'
    text = f'{title}: mean accuracy {correct.mean():.3f}'
    canvas.finish(axes, text, 'Confidence (probability)', '')
    axes.set_xlim(0, 1)
  panels[0].set_ylabel('Fraction of predictions', fontsize=10)
  canvas.legend(panels[-1])
  return canvas.figure_of(panels[0])


def simplex(
  coefficients: np.ndarray,
  accuracy: np.ndarray,
  axes: axes_lib.Axes | None = None,
) -> figure_lib.Figure:
  """Draws convex combinations of three models, coloured by accuracy [1].

  Args:
    coefficients: `[num_models, 3]`, each summing to 1; a corner is a client.
    accuracy: `[num_models]`, in [0, 1].

  Returns:
    figure: a triangle of points; the best one is in a star, the centre a cross.
  """
  if axes is None:
    (axes,) = canvas.new_axes((5.4, 4.4))
  corners = np.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])
  points = coefficients @ corners
  x, y = points.T
  shown = axes.scatter(x, y, c=accuracy, s=14, cmap='viridis')
  best = points[accuracy.argmax()]
  axes.plot(*np.vstack([corners, corners[:1]]).T, color=canvas.GREY, lw=1)
  # Its outline: the point in it, and its colour, stay to be seen.
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
