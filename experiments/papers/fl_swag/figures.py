"""The figures of Makni 2022: the split (section 7), calibration (section 8.3).

`experiments.hmc` draws the toy figures of section 6.
"""

import functools

from bfl_tf import plots
from experiments.harness import cells, figures
from experiments.papers.fl_swag import deep, grids

_SPLIT = {'FL-SWAG': grids.RULES_ON_SWAG['Product', 'mnist']}


def _one(draw):
  def drawn(runs):
    ((run,),) = runs.values()
    return draw(run)

  return drawn


_PANELS = {
  panel: {
    row: cell
    for (row, name), cell in deep.CALIBRATION.items()
    if name == column
  }
  for column, panel in {
    **deep.DATASETS,
    deep.CIFAR10: 'cifar10_features',
  }.items()
}
_TOGETHER = 'their examples together'

FIGURES = (
  figures.Figure(
    grids.PAPER,
    'data_split',
    'classes and number of examples of each client',
    {'classes': _SPLIT, 'sizes': _SPLIT},
    {'classes': _one(plots.partition), 'sizes': _one(plots.sizes)},
    cells.ONE,
  ),
  figures.Figure(
    grids.PAPER,
    'calibration_gap',
    'accuracy minus confidence, by confidence',
    _PANELS,
    # As many bins as the ECE of configs/fl_swag.flags.
    functools.partial(plots.calibration_gap, num_bins=20),
    of_seeds=_TOGETHER,
  ),
  figures.Figure(
    grids.PAPER,
    'calibration_above',
    'accuracy minus confidence of predictions above a confidence',
    _PANELS,
    plots.calibration_above,
    of_seeds=_TOGETHER,
  ),
  figures.sweep(
    grids.PAPER,
    'by_epochs',
    'FL-SWAG by local epochs',
    {'mnist': deep.BY_EPOCHS},
    {'mnist': 'Local epochs'},
  ),
)
