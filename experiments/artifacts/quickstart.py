"""The README's picture: the quickstart under four rules, nothing else changed.

Ours, not a paper's: at every scale but `smoke` it is the preset as it stands.
"""

from bfl_tf import plots
from bfl_tf.plots import canvas
from experiments.harness import cells, figures

PAPER = cells.Paper(
  'quickstart',
  scales={
    **{scale: {} for scale in cells.SCALES},
    'smoke': cells.SMALLEST,
  },
)
RULES = {
  'Naive weighted average': 'nwa',
  'Linear pooling': 'lp',
  'Weighted sum': 'ws',
  'Conflation': 'conflation',
}
CELLS = {
  name: cells.Cell(PAPER, rule, {'pooling': rule})
  for name, rule in RULES.items()
}


def draw(runs):
  """Accuracy on what is retained, and the calibration error, side by side."""
  figure = canvas.new_figure((9.0, 3.6))
  left, right = figure.subplots(1, 2)
  plots.retention(runs, [left], ('normalized_entropy',))
  plots.learning_curve(runs, 'ece', right)
  left.set_title('Accuracy where it is most certain', fontsize=11)
  left.set_ylabel('Accuracy on what is retained')
  # What is left out of the picture is level.
  left.set_xlim(0.5, 1)
  right.set_title('Calibration error, lower is better', fontsize=11)
  right.set_ylabel('Expected calibration error')
  right.set_ylim(bottom=0)
  for axes in (left, right):
    axes.get_legend().remove()
  lines = right.get_legend_handles_labels()
  place = {'loc': 'outside lower center', 'ncols': len(runs)}
  figure.legend(*lines, fontsize=9.5, frameon=False, **place)
  return figure


TABLES, CLAIMS = (), ()
FIGURES = (
  figures.Figure(
    PAPER,
    'rules',
    'four rules on the quickstart',
    {'digits': CELLS},
    draw,
    dict.fromkeys(cells.SCALES, 1),
  ),
)
