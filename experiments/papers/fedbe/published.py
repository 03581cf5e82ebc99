"""Tables 1 to 9 of Chen & Chao 2021, and those of appendix C."""

import functools

from experiments.harness import tables
from experiments.papers.fedbe import grids, settings

_PARTIAL = {
  'laptop': f'{settings.STAND_INS} 50 clients, 10 of them in each of 30 '
  'rounds, 2 classes a client.',
  'overnight': f'{settings.DEPTHS} CIFAR-10 among 100 clients, 10 of them in '
  'each of 50 rounds, 2 classes a client.',
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
  _table('table1', 'methods and networks', {**grids.MAIN, **grids.CENTRALIZED}),
  _table('table2', 'with FedProx and FedAvgM', grids.COMPANIONS),
  _table('table3', 'teachers and distillation', grids.TARGETS),
  _table('table4', 'unlabeled data', grids.UNLABELED),
  _table(
    'table5',
    'partial participation, Tiny-ImageNet',
    grids.TINY,
    note=_PARTIAL,
  ),
  _table('table6', 'systems heterogeneity', grids.HETEROGENEOUS),
  _table('table7', 'Dirichlet in place of Gaussian', grids.DIRICHLET),
  _table(
    'table8',
    'one round',
    grids.TABLE8,
    seeds=settings.FEWER,
    note=_ONE_ROUND,
  ),
  _table(
    'table9',
    'partial participation, CIFAR-100',
    grids.CIFAR100,
    note=_PARTIAL,
  ),
  _table('appendix_c3', 'the ensemble after FedAvg', grids.AFTERWARDS),
  _table('appendix_c5', 'batch and group normalization', grids.NORMALIZED),
  _table('appendix_c6', 'SCAFFOLD', _SCAFFOLD),
)
