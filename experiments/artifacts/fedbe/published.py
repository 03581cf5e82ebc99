"""Tables 1 to 9 of Chen & Chao 2021, and those of appendix C."""

from experiments.artifacts.fedbe import grids, settings
from experiments.harness import cells, tables

_STAND_INS = (
  'ConvNet: LeNet-5 on the first 10 000 images of Fashion-MNIST, not '
  'augmented. ResNets: depth 8 for 20, 14 for 32, 20 for 44, 26 for 56, on the '
  'first 5 000 images of CIFAR-10; so ConvNet for MobileNetV2. Their targets '
  'are not sharpened, their students have 5 epochs, in cycles of 5 steps.'
)
_LAPTOP = (
  f'{_STAND_INS} 10 rounds, of 20 epochs for ConvNet and 5 for others; 2 000 '
  'and 1 000 images on the server.'
)
_PARTIAL = (
  f'{_STAND_INS} 50 clients, 10 of them in each of 30 rounds, 2 classes a '
  'client.'
)
_DEPTHS = (
  'ResNets: depth 8 for 20, 14 for 32, 20 for 44, 26 for 56; ConvNet for '
  "MobileNetV2. The paper's images and student; what is here of other sets: "
  '10 000 images.'
)
_OVERNIGHT = (
  f'{_DEPTHS} 20 rounds, of 10 epochs for ConvNet and 5 for ResNets; one round '
  'of 200; centralized as many in all.'
)
_PARTIAL_OVERNIGHT = (
  f'{_DEPTHS} CIFAR-10 among 100 clients, 10 of them in each of 50 rounds, 2 '
  'classes a client.'
)
_ONE_ROUND = 'LeNet-5 on the first 10 000 images of Fashion-MNIST, 40 epochs.'
_ACCURACY = (cells.ACCURACY,)


def _table(
  name,
  title,
  grid,
  laptop=_LAPTOP,
  overnight=_OVERNIGHT,
  seeds=settings.SEEDS,
):
  notes = {
    'paper': 'The settings of the paper; where it has none, ours: '
    'docs/results/fedbe.md. A random deal of the major classes.',
    'overnight': overnight,
    'laptop': laptop,
  }
  return tables.Table(
    settings.PAPER, name, title, grid, _ACCURACY, seeds, notes
  )


_SCAFFOLD = {
  key: cell for key, cell in grids.SCAFFOLD.items() if 'ResNet' in key[1]
}

TABLES = (
  _table('table1', 'methods and networks', {**grids.MAIN, **grids.CENTRALIZED}),
  _table('table2', 'with FedProx and FedAvgM', grids.COMPANIONS),
  _table('table3', 'what is distilled', grids.TARGETS),
  _table('table4', 'unlabeled data', grids.UNLABELED),
  _table(
    'table5',
    'partial participation, Tiny-ImageNet',
    grids.TINY,
    _PARTIAL,
    _PARTIAL_OVERNIGHT,
  ),
  _table('table6', 'systems heterogeneity', grids.HETEROGENEOUS),
  _table('table7', 'Dirichlet in place of Gaussian', grids.DIRICHLET),
  _table(
    'table8',
    'one round',
    grids.TABLE8,
    _ONE_ROUND,
    'The settings of the paper.',
    settings.FEWER,
  ),
  _table(
    'table9',
    'partial participation, CIFAR-100',
    grids.CIFAR100,
    _PARTIAL,
    _PARTIAL_OVERNIGHT,
  ),
  _table('appendix_c3', 'the ensemble after FedAvg', grids.AFTERWARDS),
  _table('appendix_c5', 'batch and group normalization', grids.NORMALIZED),
  _table('appendix_c6', 'SCAFFOLD', _SCAFFOLD),
)
