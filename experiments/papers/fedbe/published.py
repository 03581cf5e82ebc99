"""Tables 1 to 9 of Chen & Chao 2021, and those of appendix C."""

import functools

from experiments.harness import cells, tables
from experiments.papers.fedbe import grids, settings

_PARTIAL = {
  'laptop': f'{settings.STAND_INS} 50 clients, 30 rounds with 10 clients '
  'each, 2 classes per client.',
  'overnight': f'{settings.DEPTHS} CIFAR-10 with 100 clients, 50 rounds '
  'with 10 clients each, 2 classes per client.',
}
_ONE_ROUND = {
  'laptop': 'LeNet-5 on the first 10 000 images of Fashion-MNIST, 40 epochs.',
  'overnight': 'The settings of the paper.',
}
_table = functools.partial(tables.Table, settings.PAPER, seeds=settings.SEEDS)
_SCAFFOLD = {
  key: cell for key, cell in grids.SCAFFOLD.items() if 'ResNet' in key[1]
}

TABLES = (
  _table(
    'table1',
    'accuracy of all methods, by network',
    {**grids.MAIN, **grids.CENTRALIZED},
  ),
  _table('table2', 'FedBE with FedProx and with FedAvgM', grids.COMPANIONS),
  _table(
    'table3', 'FedBE by teachers and by optimizer of the student', grids.TARGETS
  ),
  _table('table4', 'FedBE with other unlabeled data', grids.UNLABELED),
  _table(
    'table5',
    'Tiny-ImageNet with partial participation',
    grids.TINY,
    note=_PARTIAL,
  ),
  _table(
    'table6', 'clients with different numbers of epochs', grids.HETEROGENEOUS
  ),
  _table(
    'table7',
    'Dirichlet distribution of models in place of a Gaussian',
    grids.DIRICHLET,
  ),
  _table(
    'table8',
    'students and ensembles after one round',
    grids.TABLE8,
    seeds=cells.SEEDS,
    note=_ONE_ROUND,
  ),
  _table(
    'table9',
    'CIFAR-100 with partial participation',
    grids.CIFAR100,
    note=_PARTIAL,
  ),
  _table(
    'appendix_c3',
    'ensemble and distillation after the last round of FedAvg',
    grids.AFTERWARDS,
  ),
  _table(
    'appendix_c5',
    'batch normalization and group normalization',
    grids.NORMALIZED,
  ),
  _table('appendix_c6', 'SCAFFOLD with and without FedBE', _SCAFFOLD),
)
