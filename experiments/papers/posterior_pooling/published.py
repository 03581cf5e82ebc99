"""Fischer et al. 2024: its tables and figures, and three tables of ours."""

from bfl_tf import plots
from experiments.harness import cells, figures, tables
from experiments.papers.posterior_pooling import grids

_FASHION = 'LeNet-5 on the first 5 000 images of Fashion-MNIST.'
_CIFAR = 'LeNet-5 on the first 5 000 images of CIFAR-10, no augmentation.'
_OVERNIGHT = 'LeNet-5 on all of CIFAR-10, augmented.'
_SCORES = (cells.ACCURACY, cells.NLL)
_PRETRAINED_SCORES = (
  *_SCORES,
  cells.Measure(
    'Start accuracy (%)', cells.column('accuracy', lambda v: v[0]), factor=100
  ),
  cells.Measure('Start NLL', cells.column('nll', lambda v: v[0]), digits=3),
  cells.Measure(
    'Guarded (%)',
    cells.column('guarded_fraction', lambda v: v[-1]),
    factor=100,
  ),
)


def _table(name, title, grid, laptop, overnight, measures=_SCORES, **more):
  """Adds notes that describe the `laptop` and `overnight` scales."""
  note = {'laptop': laptop, 'overnight': f'{_OVERNIGHT} {overnight}'}
  return tables.Table(
    grids.PAPER, name, title, grid, measures, note=note, **more
  )


TABLES = (
  _table(
    'table1',
    'centralized training',
    grids.CENTRALIZED,
    f'{_FASHION} Ten epochs.',
    '100 epochs, half of those at paper scale. The paper gives no number.',
    _SCORES[:1],
    seeds={**cells.SEEDS, 'paper': range(1)},
  ),
  _table(
    'table2',
    'pooling rules, one local epoch',
    grids.E1,
    f'{_FASHION} 20 rounds.',
    '100 rounds.',
  ),
  _table(
    'table2_kl_all',
    'Table 2 with KL / N in place of KL / N_k (ours)',
    grids.KL_ALL,
    f'{_FASHION} 20 rounds.',
    '100 rounds.',
  ),
  _table(
    'table2_mean',
    'Table 2 with the KL term as a mean over weights (ours)',
    grids.MEAN,
    f'{_FASHION} 20 rounds.',
    '100 rounds.',
    published_in='table2',
  ),
  _table(
    'dialects',
    'Table 2 with other forms of the KL term (ours)',
    grids.DIALECTS,
    f'{_FASHION} 20 rounds.',
    '30 rounds.',
    (
      *_SCORES,
      cells.ECE,
      cells.Measure(
        'Median scale x 1000',
        cells.column('median_scale', lambda values: values[-1]),
        factor=1000,
        digits=3,
      ),
    ),
    seeds={**cells.SEEDS, 'overnight': range(1)},
    published_in='table2',
    published_rows=grids.AS_PUBLISHED,
  ),
  _table(
    'table3',
    'pooling rules, five local epochs',
    grids.E5,
    f'{_FASHION} 8 rounds.',
    '40 rounds.',
  ),
  _table(
    'table4',
    'one round, with and without pre-training',
    grids.ONE_SHOT,
    f'{_CIFAR} 40 local epochs; 500 images on the server.',
    'Epochs and server images as in the paper.',
    _PRETRAINED_SCORES,
  ),
  _table(
    'table5',
    'pooling rules, with a prior that is updated each round',
    grids.PRIOR_UPDATED,
    f'{_CIFAR} 20 rounds.',
    '100 rounds.',
    seeds={**cells.SEEDS, 'paper': range(2)},
  ),
)  # fmt: skip

_BY_RULE = {rule: grids.method(rule) for rule in cells.RULES}
_DROPOUT = {
  'MC dropout': 'MC Dropout NWA train_size',
  'WS': 'Flipout WS train_size',
}
_PRETRAINING = {
  'DWC': 'Flipout DWC pretrain=Yes',
  'WS': 'Flipout WS pretrain=Yes',
}


_CALIBRATION = 'calibration', plots.retention, ('iid', 'two_class')
_CURVES = 'learning curves', plots.learning_curve, tuple(grids.PARTITIONS)


def _figure(number, kind, title, grid, names):
  what, draw, columns = kind
  panels = {
    column: {label: grid[row, column] for label, row in names.items()}
    for column in columns
  }
  title = f'{what}, {title}'
  return figures.Figure(grids.PAPER, f'figure{number}', title, panels, draw)


FIGURES = (
  _figure(2, _CALIBRATION, 'one local epoch', grids.E1, _BY_RULE),
  _figure(3, _CURVES, 'one local epoch', grids.E1, _BY_RULE),
  _figure(4, _CALIBRATION, 'five local epochs', grids.E5, _BY_RULE),
  _figure(5, _CURVES, 'five local epochs', grids.E5, _BY_RULE),
  _figure(6, _CALIBRATION, 'after pre-training', grids.ONE_SHOT, _PRETRAINING),
  _figure(7, _CALIBRATION, 'MC dropout, E = 1', grids.E1, _DROPOUT),
  _figure(8, _CURVES, 'MC dropout, E = 1', grids.E1, _DROPOUT),
  _figure(9, _CURVES, 'MC dropout, E = 5', grids.E5, _DROPOUT),
)
