"""Claims of Chen & Chao 2021, each with a test that was fixed in advance."""

import functools

from experiments.harness import cells, claims
from experiments.papers.fedbe import grids, settings

_PICKED = cells.Measure(
  'points of accuracy of the best member', cells.picked_member, factor=100
)
_ALIGNMENT = cells.Measure(
  'points of calibration error', cells.final('mean_ece'), factor=100
)
_STEP = 'step ConvNet'
_GRID = {
  **grids.MAIN,
  **grids.COMPANIONS,
  **grids.SCAFFOLD,
  **grids.TARGETS,
  **grids.UNLABELED,
  **grids.DIRICHLET,
}
_ONE_ROUND = {cell.predictor: cell for cell in grids.TABLE8.values()}
_SWISS = {
  name: grids.SWISS_ROLL.reading(group)
  for name, group in (
    ('FedAvg', 'A'), ('the clients', 'C'), ('the samples together', 'S')
  )
}  # fmt: skip
_over = claims.over
_claim = functools.partial(
  claims.Claim, settings.PAPER, seeds={**cells.OF_CLAIMS, 'paper': range(5)}
)

CLAIMS = (
  _claim(
    'swiss_roll',
    'Swiss roll: ten models sampled by Eq. 7 are together more accurate than '
    'FedAvg. The best sampled model is more accurate than the average. The '
    "samples have a lower mean calibration error than the clients' models.",
    [
      *_over(_SWISS, 'the samples together', 'FedAvg'),
      claims.Comparison(
        'best of 400 samples minus FedAvg, selected on one half of the test '
        'examples and scored on the other half',
        grids.SWISS_ROLL_MANY.reading('S'),
        grids.SWISS_ROLL_MANY.reading('A'),
        _PICKED,
      ),
      *_over(_SWISS, 'the clients', 'the samples together', _ALIGNMENT),
    ],
    seeds=cells.TEN,
  ),
  _claim(
    'one_round_order',
    'After one round: the ensemble of the clients (C) is more accurate than '
    'their average (A). Samples of a posterior (S) improve the ensemble. The '
    'distilled students are less accurate than the ensemble, and SWA is more '
    'accurate than SGD.',
    _over(_ONE_ROUND, ('C', 'C:sgd'), 'A')
    + _over(_ONE_ROUND, 'A+C+S', 'C')
    + _over(_ONE_ROUND, 'C:swa', 'C:sgd')
    + _over(_ONE_ROUND, 'A+C+S:swa', ('C:swa', 'A+C+S:sgd'))
    + _over(_ONE_ROUND, 'C', 'A+C+S:swa'),
    seeds=cells.OF_CLAIMS,
  ),
  _claim(
    'ensemble_beats_the_average',
    'The ensemble of all models (A+C+S) is more accurate than the average in '
    "the mean over FedAvg's rounds (ConvNet here, ResNet20 in the paper).",
    _over(
      {x: grids.WATCHED['ConvNet'].reading(x) for x in ('A', 'A+C+S')},
      'A+C+S',
      'A',
      cells.SPEED,
    ),
  ),
  _claim(
    'fedbe_beats_fedavg',
    'FedBE is more accurate than FedAvg on the Step partition (ConvNet).',
    _over(_GRID, 'FedBE', 'FedAvg', where=_STEP),
  ),
  _claim(
    'swa_beats_sgd',
    'FedBE is more accurate if the student is trained with SWA instead of SGD '
    '(ConvNet).',
    _over(_GRID, 'FedBE', 'FedBE (w/o SWA)', where=_STEP),
  ),
  _claim(
    'all_targets_beat_the_average',
    'Distillation from A+C+S is more accurate than from A alone (ConvNet).',
    _over(_GRID, 'A+C+S', 'A', where=_STEP),
  ),
  _claim(
    'fedbe_helps_its_companions',
    'FedBE makes FedProx and FedAvgM (ConvNet) and SCAFFOLD (ResNet20) more '
    'accurate.',
    _over(_GRID, 'FedBE+FedProx', 'FedProx', where=_STEP)
    + _over(_GRID, 'FedBE+FedAvgM', 'FedAvgM', where=_STEP)
    + _over(_GRID, 'FedBE+SCAFFOLD', 'SCAFFOLD', where='step ResNet20'),
  ),
  _claim(
    'partial_participation',
    'With a tenth of the clients per round, FedBE is more accurate than '
    'FedAvg on the Step partition of CIFAR-100. At overnight scale, the data '
    'is CIFAR-10 with two major classes per client. At laptop scale, it is '
    'Fashion-MNIST with a fifth of the clients per round.',
    _over(
      grids.CIFAR100,
      'FedBE',
      'FedAvg',
      where='cifar100_step_100_clients ConvNet',
    ),
  ),
  _claim(
    'systems_heterogeneity',
    'If the number of local epochs differs between clients, FedBE is more '
    'accurate than FedAvg and FedProx (ConvNet).',
    _over(grids.HETEROGENEOUS, 'FedBE', ('FedAvg', 'FedProx'), where=_STEP),
  ),
  _claim(
    'other_unlabeled_data',
    'FedBE with unlabeled images of another data set is more accurate than '
    'FedAvg.',
    _over(
      _GRID, ('U=CIFAR-100 50K', 'U=Tiny-ImageNet 100K'), 'FedAvg', where=_STEP
    ),
  ),
  _claim(
    'dirichlet_within_a_point',
    'Sampling by Eq. 7 with alpha = 1 and sampling by Eq. 5 differ by less '
    'than one point of accuracy. (In the paper, Eq. 7 is at most half a point '
    'worse. The margin is ours.)',
    _over(_GRID, 'Dirichlet alpha=1', 'FedBE', margin=1.0, where=_STEP)
    + _over(_GRID, 'FedBE', 'Dirichlet alpha=1', margin=1.0, where=_STEP),
  ),
  _claim(
    'more_than_new_statistics',
    'On a network with batch normalization, FedBE is more accurate than '
    'FedAvg, and more accurate than FedAvg whose batch statistics are '
    're-estimated on the same server data. (The second comparison is ours.)',
    _over(
      grids.NORMALIZED,
      'FedBE',
      ('FedAvg', 'FedAvg, recalibrated'),
      where='step_200_rounds_ResNet20 BN',
    ),
  ),
)
