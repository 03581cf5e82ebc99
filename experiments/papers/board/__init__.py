"""NIID-Bench on CIFAR-10, compared with two public leaderboards.

Settings are those of Flower's baseline niid_bench and of NIID-Bench's own code.
docs/results/board.md lists differences between both codes and ours. Flower's
score is the accuracy of the best round; the last round is reported too.
"""

import functools

from experiments.harness import cells, tables
from experiments.papers import uncertainty

PAPER = cells.Paper(
  'board',
  citation='Li et al. 2022',
  scales={
    # Overnight scale is that of the paper. Smaller scales are only a preview.
    'laptop': {'num_rounds': 10, 'local_epochs': 2},
    'smoke': {
      **cells.SMALLEST,
      'partition': 'iid',
      'server_dataset': '',
      'server_split': 'train',
      'resize': False,
      'num_server_examples': 100,
      'num_unlabeled_examples': 0,
      'distil.swa_start': 0,
      'distil.swa_cycle': 1,
    },
  },
  notes={
    **dict.fromkeys(('paper', 'overnight'), '50 rounds of 10 epochs.'),
    'laptop': '10 rounds of 2 epochs.',
  },
)
_FLAGS = {'FedAvg': (), 'SCAFFOLD': ('scaffold',), 'FedProx': ('fedprox',),
          'FedNova': ('fednova',)}  # fmt: skip
_SPLITS = {'IID': ('iid',), 'Dirichlet 0.5': (), 'two labels': ('two_labels',),
           'three labels': ('three_labels',)}  # fmt: skip
_RULES = ('WS', 'NWA', 'LP', 'Conflation')


def _cell(name, *flags, **overrides):
  return cells.Cell(PAPER, name, {**PAPER.flags(*flags), **overrides})


def _name(*words):
  return '/'.join(word.replace(' ', '_').lower() for word in words)


POINTS = {
  (method, split): _cell(_name(split, method), *of_split, *of_method)
  for split, of_split in _SPLITS.items()
  for method, of_method in _FLAGS.items()
}
_DIRICHLET = 'Dirichlet 0.5'
_POSTERIORS = {
  'FedAvg': POINTS['FedAvg', _DIRICHLET],
  **{
    f'Flipout, {rule}': _cell(
      f'dirichlet_0.5/flipout_{cells.RULES[rule]}',
      'flipout',
      pooling=cells.RULES[rule],
    )
    for rule in _RULES
  },
  **{
    row: _cell(f'dirichlet_0.5/{name}', name)
    for row, name in (
      ('MC dropout', 'mc_dropout'),
      ('FedBE', 'fedbe'),
      ('FL-SWAG', 'fl_swag'),
      ('PVI', 'pvi'),
      ('IVON', 'ivon'),
    )
  },
}
POSTERIORS = {(row, _DIRICHLET): cell for row, cell in _POSTERIORS.items()}

_BENCH = 'split of NIID-Bench'


def _of_bench(method, *flags, **overrides):
  partition = 'experiments.papers.board.data:niid_bench_2021'
  return _cell(_name(_BENCH, method), *flags, partition=partition, **overrides)


DIFFERENCES = {
  ('FedAvg', _DIRICHLET): POINTS['FedAvg', _DIRICHLET],
  ('SCAFFOLD', _DIRICHLET): POINTS['SCAFFOLD', _DIRICHLET],
  **{(m, _BENCH): _of_bench(m, *flags) for m, flags in _FLAGS.items()},
  # NIID-Bench's leaderboard uses another mu.
  ('FedProx', _BENCH): _of_bench(
    'fedprox_0.001', 'fedprox', **{'proximal.weight': 0.001}
  ),
}

BEST = cells.Measure(
  'best accuracy (%)',
  cells.column('accuracy', max),
  'accuracy_percent',
  factor=100,
)
LAST = cells.Measure('last (%)', cells.final('accuracy'), factor=100)
_LEAST_SECONDS = cells.column('train_seconds', min, first_round=1)
_SCORES = (
  BEST,
  LAST,
  cells.NLL,
  cells.Measure('ECE', cells.final('ece'), digits=3),
  uncertainty.measure('AURC', 'aurc_normalized_entropy'),
  uncertainty.measure(
    'AUROC CIFAR-100', 'near_cifar100_normalized_entropy_auroc'
  ),
  uncertainty.measure('MNIST', 'far_mnist_normalized_entropy_auroc'),
  cells.Measure(
    'MB up per round', cells.column('bytes_up', max), factor=1e-6, digits=1
  ),
  cells.Measure('lowest seconds per round', _LEAST_SECONDS, digits=1),
)
_table = functools.partial(tables.Table, PAPER)
TABLES = (
  _table(
    'points',
    'four methods on Dirichlet 0.5, compared with the table of Flower',
    {key: cell for key, cell in POINTS.items() if key[1] == _DIRICHLET},
    _SCORES,
    cells.FEWER,
  ),
  _table(
    'splits',
    'four methods on the other splits, compared with the table of Flower',
    {key: cell for key, cell in POINTS.items() if key[1] != _DIRICHLET},
    (BEST, LAST),
    cells.ONE,
  ),
  _table(
    'posteriors',
    'posteriors on Dirichlet 0.5',
    POSTERIORS,
    _SCORES,
    cells.FEWER,
  ),
  _table(
    'differences',
    'differences between the two public implementations',
    DIFFERENCES,
    (BEST, LAST),
    cells.ONE,
  ),
)
