"""Tables 1 to 5 and the grid search of Ozdayi et al. 2020, and one of ours.

The paper reports validation accuracy and names no test data; both are here.
"""

from experiments.artifacts.noniid_techniques import grids, settings
from experiments.harness import cells, tables

_NOTES = {
  'paper': 'The settings of the paper; where it has none, ours: '
  'docs/results/noniid_techniques.md. A tenth of the images is validation.',
  'overnight': "Fixup ResNet-8 on the paper's images, 40 rounds.",
  'laptop': 'LeNet-5 on the first 5 000 images of CIFAR-10, batch 64, rate '
  '0.02, 20 rounds; radius 2, around zero 20; posteriors: 10 rounds.',
}
_BOTH = (grids.VALIDATION, cells.ACCURACY)
_CALIBRATED = (
  cells.ACCURACY,
  cells.NLL,
  cells.Measure('ECE', cells.final('ece'), digits=3),
)


_ON_LENET5 = (
  'The baseline, both released starts and no augmentation are one run: LeNet-5 '
  'has no Fixup, and no image is augmented.'
)


def _table(name, title, grid, measures=_BOTH, seeds=cells.SEEDS, laptop=''):
  notes = _NOTES | {'laptop': f'{_NOTES["laptop"]} {laptop}'.strip()}
  return tables.Table(settings.PAPER, name, title, grid, measures, seeds, notes)


TABLES = (
  _table('table1', 'the baseline', grids.TABLE1),
  _table('table2', 'server-side training', grids.TABLE2),
  _table('table3', 'projected gradient descent and noise', grids.TABLE3),
  _table('table4', 'server momentum', grids.TABLE4),
  _table('table5', 'sign threshold', grids.TABLE5),
  _table(
    'grid_search',
    'the combination that the paper finds best',
    grids.GRID_SEARCH,
    seeds=cells.FEWER,
  ),
  _table(
    'grid',
    'all combinations (ours)',
    grids.GRID,
    seeds=cells.FEWER,
  ),
  _table(
    'baseline_gap',
    'what may part us from the published 73.0 ± 2.6 %, after 30 rounds (ours)',
    grids.BASELINE_GAP,
    (grids.LATE, *_BOTH),
    cells.ONE,
    _ON_LENET5,
  ),
  _table(
    'posteriors',
    'the techniques under pooled posteriors (ours)',
    grids.POSTERIORS,
    _CALIBRATED,
    cells.FEWER,
  ),
)
