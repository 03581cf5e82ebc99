"""Tables 1 to 5 and the grid search of Ozdayi et al. 2020, and one of ours.

The paper reports validation accuracy only; these tables add test accuracy.
"""

import functools

from experiments.harness import cells, tables
from experiments.papers.noniid_techniques import grids, settings

_BOTH = (grids.VALIDATION, cells.ACCURACY)
_CALIBRATED = (
  cells.ACCURACY,
  cells.NLL,
  cells.Measure('ECE', cells.final('ece'), digits=3),
)


_table = functools.partial(tables.Table, settings.PAPER)
TABLES = (
  _table(
    'table1', 'FedAvg without a technique, IID and non-IID', grids.TABLE1, _BOTH
  ),
  _table('table2', 'server-side training', grids.TABLE2, _BOTH),
  _table('table3', 'projected gradient descent and noise', grids.TABLE3, _BOTH),
  _table('table4', 'momentum on the server', grids.TABLE4, _BOTH),
  _table('table5', 'sign threshold on the server', grids.TABLE5, _BOTH),
  _table(
    'grid_search',
    'the best combination of the paper',
    grids.GRID_SEARCH,
    _BOTH,
    cells.FEWER,
  ),
  _table(
    'grid',
    'all combinations (ours)',
    grids.GRID,
    _BOTH,
    cells.FEWER,
  ),
  _table(
    'baseline_gap',
    'possible reasons for the lower baseline, 30 rounds (ours)',
    grids.BASELINE_GAP,
    (grids.LATE, *_BOTH),
    cells.ONE,
    {
      'laptop': f'{settings.PAPER.notes["laptop"]} Four rows share one '
      'run: with LeNet-5 without augmentation, the baseline, both released '
      'starts and the row without augmentation are the same.',
    },
  ),
  _table(
    'posteriors',
    'the techniques under pooled posteriors (ours)',
    grids.POSTERIORS,
    _CALIBRATED,
    cells.FEWER,
  ),
)
