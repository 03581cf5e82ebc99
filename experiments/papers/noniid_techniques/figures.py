"""Figure 1 of Ozdayi et al. 2020, and accuracy by round."""

from bfl_tf import plots
from experiments.harness import cells, figures
from experiments.papers.noniid_techniques import four_points, grids, settings

_TECHNIQUES = {
  'baseline': grids.BASELINE,
  'server data 5%': grids.SERVER_DATA,
  'projection': grids.PROJECTION,
  'momentum 0.5': grids.MOMENTUM,
  'sign threshold': grids.SIGN_THRESHOLD,
  'combination': grids.COMBINATION,
}

FIGURES = (
  figures.Figure(
    settings.PAPER,
    'figure1',
    'two agents learn conflicting hypotheses',
    {
      'four_points': {
        'centralized': grids.TOY_CENTRALIZED,
        'federated': grids.TOY,
      }
    },
    four_points.draw,
    cells.ONE,
  ),
  figures.Figure(
    settings.PAPER,
    'by_round',
    'accuracy, and hypothesis conflicts between agents',
    {'accuracy': _TECHNIQUES, 'conflict': _TECHNIQUES},
    {
      'accuracy': plots.learning_curve,
      'conflict': lambda runs: plots.learning_curve(
        runs, dict.fromkeys(runs, 'hypothesis_conflict_C')
      ),
    },
  ),
)
