"""What Chen & Chao 2021 claim, each with a test fixed beforehand."""

from collections.abc import Sequence

from experiments.artifacts.fedbe import grids, settings
from experiments.harness import cells, claims

_PICKED = cells.Measure('points of accuracy', cells.picked_member, factor=100)
_ALIGNMENT = cells.Measure(
  'points of calibration error', cells.final('mean_ece'), factor=100
)
_STEP = 'step ConvNet'


def _claim(name, statement, *comparisons, seeds=settings.SEEDS):
  return claims.Claim(settings.PAPER, name, statement, comparisons, seeds)


def _helped(names: Sequence[str], grid, column=_STEP):
  return tuple(
    claims.Comparison(
      f'FedBE+{name} over {name}, {column}',
      grid[f'FedBE+{name}', column],
      grid[name, column],
    )
    for name in names
  )


def _ordered(*steps):
  """Table 8's order, each over the one before it."""
  cell = {reading.predictor: reading for reading in grids.TABLE8.values()}
  return tuple(
    claims.Comparison(f'{better} over {worse}', cell[better], cell[worse])
    for worse, better in steps
  )


_SWISS = {
  name: grids.SWISS_ROLL.reading(name) for name in ('A', 'C', 'S', 'A+C+S')
}
_FEDBE, _FEDAVG = grids.MAIN['FedBE', _STEP], grids.MAIN['FedAvg', _STEP]
_SGD = grids.MAIN['FedBE (w/o SWA)', _STEP]

CLAIMS = (
  _claim(
    'swiss_roll',
    'On the Swiss roll, ten models sampled by Eq. 7 together beat FedAvg, the '
    'best of them is not the average, and they are better calibrated than the '
    "clients' models.",
    claims.Comparison(
      'the samples together over FedAvg', _SWISS['S'], _SWISS['A']
    ),
    claims.Comparison(
      'the best of 400 samples over FedAvg, picked on one half of the test '
      'points and scored on the other',
      grids.SWISS_ROLL_MANY.reading('S'),
      grids.SWISS_ROLL_MANY.reading('A'),
      _PICKED,
    ),
    claims.Comparison(
      "the clients' calibration error over the samples'",
      _SWISS['C'],
      _SWISS['S'],
      _ALIGNMENT,
    ),
    seeds=cells.TEN,
  ),
  _claim(
    'one_round_order',
    'After one round: the ensemble of clients beats the average, samples added '
    'beat it, distilled ones follow, SWA over SGD.',
    *_ordered(
      ('A', 'C'),
      ('C', 'A+C+S'),
      ('A', 'C:sgd'),
      ('C:sgd', 'C:swa'),
      ('C:swa', 'A+C+S:swa'),
      ('A+C+S:sgd', 'A+C+S:swa'),
      ('A+C+S:swa', 'C'),
    ),
    seeds=settings.FEWER,
  ),
  _claim(
    'ensemble_beats_the_average',
    "Over FedAvg's rounds the ensemble of its models beats the average "
    '(ConvNet; the paper says it of ResNet20).',
    claims.Comparison(
      'A+C+S over A',
      grids.WATCHED['ConvNet'].reading('A+C+S'),
      grids.WATCHED['ConvNet'].reading('A'),
      cells.SPEED,
    ),
  ),
  _claim(
    'fedbe_beats_fedavg',
    'FedBE beats FedAvg on the Step split (ConvNet).',
    claims.Comparison('FedBE over FedAvg', _FEDBE, _FEDAVG),
  ),
  _claim(
    'swa_beats_sgd',
    'In distillation SWA beats SGD (ConvNet).',
    claims.Comparison('FedBE over FedBE without SWA', _FEDBE, _SGD),
  ),
  _claim(
    'all_targets_beat_the_average',
    'A+C+S as targets beat A alone (ConvNet).',
    claims.Comparison('A+C+S over A', _FEDBE, grids.TARGETS['A', _STEP]),
  ),
  _claim(
    'fedbe_helps_its_companions',
    'FedBE helps FedProx, FedAvgM (ConvNet) and SCAFFOLD (ResNet20).',
    *_helped(('FedProx', 'FedAvgM'), grids.COMPANIONS),
    *_helped(('SCAFFOLD',), grids.SCAFFOLD, 'step ResNet20'),
  ),
  _claim(
    'partial_participation',
    'With a tenth of the clients a round FedBE beats FedAvg on the Step split '
    'of CIFAR-100 (at overnight scale of CIFAR-10 with two major classes a '
    'client; at laptop scale of Fashion-MNIST likewise, a fifth of the '
    'clients).',
    claims.Comparison(
      'FedBE over FedAvg',
      *(
        grids.CIFAR100[method, 'cifar100_step_100_clients ConvNet']
        for method in ('FedBE', 'FedAvg')
      ),
    ),
  ),
  _claim(
    'systems_heterogeneity',
    'With local epochs that differ FedBE beats FedAvg and FedProx (ConvNet).',
    *(
      claims.Comparison(
        f'FedBE over {other}',
        grids.HETEROGENEOUS['FedBE', _STEP],
        grids.HETEROGENEOUS[other, _STEP],
      )
      for other in ('FedAvg', 'FedProx')
    ),
  ),
  _claim(
    'other_unlabeled_data',
    'Unlabeled images of another data set still help.',
    *(
      claims.Comparison(
        f'{name} over FedAvg', grids.UNLABELED[row, _STEP], _FEDAVG
      )
      for name, row in (
        ('CIFAR-100', 'U=CIFAR-100 50K'),
        ('Tiny-ImageNet', 'U=Tiny-ImageNet 100K'),
      )
    ),
  ),
  _claim(
    'dirichlet_within_a_point',
    'Sampling by Eq. 7 at alpha = 1 is within a point of Eq. 5 (the paper: at '
    'most half a point worse; the margin is ours).',
    claims.Comparison(
      'Dirichlet over Gaussian, less one point',
      grids.DIRICHLET['Dirichlet alpha=1', _STEP],
      _FEDBE,
      margin=1.0,
    ),
    claims.Comparison(
      'Gaussian over Dirichlet, less one point',
      _FEDBE,
      grids.DIRICHLET['Dirichlet alpha=1', _STEP],
      margin=1.0,
    ),
  ),
  _claim(
    'more_than_new_statistics',
    'On a network with batch normalization FedBE gains more over FedAvg than '
    'statistics re-estimated on the same server data do (a rival of ours, not '
    "of the paper's).",
    claims.Comparison(
      'FedBE over FedAvg',
      grids.NORMALIZED['FedBE', 'step_200_rounds_ResNet20 BN'],
      grids.NORMALIZED['FedAvg', 'step_200_rounds_ResNet20 BN'],
    ),
    claims.Comparison(
      'FedBE over FedAvg with statistics re-estimated',
      grids.NORMALIZED['FedBE', 'step_200_rounds_ResNet20 BN'],
      grids.NORMALIZED['FedAvg, recalibrated', 'step_200_rounds_ResNet20 BN'],
    ),
  ),
)
