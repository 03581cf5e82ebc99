"""Claims of Ozdayi et al. 2020, each with a test that was fixed in advance."""

import functools

import numpy as np

from experiments.harness import cells, claims
from experiments.papers.noniid_techniques import grids, settings

_CONFLICT = cells.Measure(
  'points of mean conflict over rounds',
  cells.column('hypothesis_conflict_C', np.mean, 1),
  factor=100,
)
_TECHNIQUES = {
  'server data 5 %': grids.SERVER_DATA,
  'projection': grids.PROJECTION,
  'momentum 0.5': grids.MOMENTUM,
  'sign threshold': grids.SIGN_THRESHOLD,
}
_CELLS = {
  **_TECHNIQUES,
  'the baseline': grids.BASELINE,
  'IID': grids.IID,
  'centralized': grids.CENTRALIZED,
  'the combination': grids.COMBINATION,
  'projection with noise': grids.PROJECTION_NOISE,
  'momentum 0.9': grids.MORE_MOMENTUM,
  'federated on four points': grids.TOY,
  'centralized on four points': grids.TOY_CENTRALIZED,
}
_over = functools.partial(claims.over, _CELLS)
_claim = functools.partial(claims.Claim, settings.PAPER)

CLAIMS = (
  _claim(
    'iid_is_centralized',
    'On IID data, federated training is at most one point less accurate than '
    'centralized training, and at least five points more accurate than on '
    'NIID(5).',
    _over('IID', 'centralized', margin=1.0)
    + _over('IID', 'the baseline', margin=-5.0),
  ),
  _claim(
    'each_technique_helps',
    'Each technique alone is more accurate than the baseline on NIID(5).',
    _over(_TECHNIQUES, 'the baseline'),
  ),
  _claim(
    'combination_is_best',
    'The combination of server data, momentum 0.9 and sign threshold is more '
    'accurate than each technique alone, and at most five points less '
    'accurate than centralized training.',
    _over('the combination', _TECHNIQUES)
    + _over('the combination', 'centralized', margin=5.0),
  ),
  _claim(
    'noise_adds_to_projection',
    'Projection with gradient noise is more accurate than projection alone.',
    _over('projection with noise', 'projection'),
  ),
  _claim(
    'less_momentum_is_better',
    'Server momentum 0.5 is more accurate than 0.9.',
    _over('momentum 0.5', 'momentum 0.9'),
  ),
  _claim(
    'conflicts_fall',
    "With each technique, the agents' models disagree on fewer test examples "
    'than in the baseline. (The paper expects this of server data only, '
    'section 3.1. The other comparisons are ours.)',
    _over('the baseline', _TECHNIQUES, _CONFLICT),
  ),
  _claim(
    'four_points',
    "Four points: the average of the two agents' models is less accurate on "
    'the plane than centralized training, and the agents disagree on more '
    "than half of the plane in the mean over rounds. (The paper's agents are "
    'decision trees, which are not averaged. Ours are networks.)',
    [
      *_over('centralized on four points', 'federated on four points'),
      claims.Comparison(
        'conflict on more than half of the plane',
        grids.TOY,
        None,
        _CONFLICT,
        margin=-50.0,
      ),
    ],
    seeds=cells.TEN,
  ),
)
