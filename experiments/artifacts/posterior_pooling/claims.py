"""What Fischer et al. 2024 claim, each with a test fixed beforehand."""

import dataclasses

from experiments.artifacts.posterior_pooling import grids
from experiments.harness import cells, claims

_CALIBRATIONS = {
  name: cells.Measure(
    f'of the possible gain by {name}', cells.final(f'{kind}_ranking')
  )
  for name, kind in {
    'epistemic uncertainty': 'epistemic',
    'aleatoric uncertainty': 'aleatoric',
    'normalized entropy': 'entropy',
  }.items()
}
_CALIBRATION = _CALIBRATIONS['epistemic uncertainty']
_LACK = dataclasses.replace(_CALIBRATION, factor=-1)


def _rules(grid, column, rules):
  return tuple(grid[grids.method(rule), column] for rule in rules)


_compare = claims.Comparison
_TWO = ('iid', 'two_class')
_DETERMINISTIC = 'Deterministic NWA train_size'
_DROPOUT = 'MC Dropout NWA train_size'
_PRETRAINED_TWO_CLASS = tuple(
  grids.ONE_SHOT[f'Flipout {rule} pretrain=Yes', 'two_class']
  for rule in ('DWC', 'WS')
)
_FAST, _SLOW = ('WS', 'WC', 'Conflation'), ('NWA', 'LP')
# No difference, in points: the size of the paper's spread over seeds.
_PAR = {'iid': 1.0, 'two_class': 5.0}
# Shares of the possible gain: a curve still flat, and one that is seen to rise.
_FLAT, _RISING = 0.1, 0.25


def _one(cell):
  return claims.Side(claims.only, (cell,))


def _equivalent(weighting, margin=_PAR['two_class']):
  """Two one-sided tests a rule: neither weighting is ahead by the margin."""
  sides = {
    'over size': (weighting, 'train_size'),
    'behind size': ('train_size', weighting),
  }
  return tuple(
    _compare(
      f'{rule}, {weighting} not {text} by {margin:g} points',
      _one(grids.E1[f'Flipout {rule} {behind}', 'two_class']),
      _one(grids.E1[f'Flipout {rule} {ahead}', 'two_class']),
      cells.POINTS,
      margin,
    )
    for rule in ('NWA', 'WS', 'WC')
    for text, (ahead, behind) in sides.items()
  )


def _claim(name, statement, *comparisons, **more):
  return claims.Claim(
    grids.PAPER, name, statement, comparisons, grids.SEEDS, **more
  )


def _over_partitions(statement, make):
  return tuple(make(f'{statement}, {column}', column) for column in _TWO)


CLAIMS = (
  _claim(
    'fast_rules_at_one_epoch',
    'With E = 1, WS, WC and conflation converge faster than NWA.',
    *_over_partitions(
      'the slowest of WS, WC, conflation over NWA',
      lambda text, column: _compare(
        text,
        claims.Side(min, _rules(grids.E1, column, _FAST)),
        claims.Side(claims.only, _rules(grids.E1, column, ('NWA',))),
        cells.SPEED,
      ),
    ),
  ),
  _claim(
    'lp_last_at_one_epoch',
    'With E = 1, LP is last.',
    *_over_partitions(
      'the worst of the others over LP',
      lambda text, column: _compare(
        text,
        claims.Side(min, _rules(grids.E1, column, ('NWA', *_FAST))),
        claims.Side(claims.only, _rules(grids.E1, column, ('LP',))),
        cells.POINTS,
      ),
    ),
  ),
  _claim(
    'rules_together_at_five_epochs',
    'With E = 5 the rules come together.',
    _compare(
      'the spread over rules at E = 1 over that at E = 5, iid',
      claims.Side(claims.spread, _rules(grids.E1, 'iid', grids.FIVE)),
      claims.Side(claims.spread, _rules(grids.E5, 'iid', grids.FIVE)),
      cells.POINTS,
    ),
  ),
  _claim(
    'epistemic_calibration_at_one_epoch',
    'With E = 1, WS, WC and conflation have better calibrated epistemic '
    'uncertainty than NWA and LP.',
    *_over_partitions(
      'the worst of WS, WC, conflation over the better of NWA and LP',
      lambda text, column: _compare(
        text,
        claims.Side(min, _rules(grids.E1, column, _FAST)),
        claims.Side(max, _rules(grids.E1, column, _SLOW)),
        _CALIBRATION,
      ),
    ),
  ),
  _claim(
    'dwc_needs_pretraining',
    'DWC from a random start fails, and from a pre-trained model works.',
    *_over_partitions(
      'DWC pre-trained over DWC from a random start by 10 points',
      lambda text, column: _compare(
        text,
        _one(grids.ONE_SHOT['Flipout DWC pretrain=Yes', column]),
        _one(grids.ONE_SHOT['Flipout DWC pretrain=No', column]),
        cells.POINTS,
        margin=-10.0,
      ),
    ),
    _compare(
      'DWC pre-trained is within 5 points of WS pre-trained, iid',
      _one(grids.ONE_SHOT['Flipout DWC pretrain=Yes', 'iid']),
      _one(grids.ONE_SHOT['Flipout WS pretrain=Yes', 'iid']),
      cells.POINTS,
      margin=5.0,
    ),
  ),
  _claim(
    'pretrained_one_shot_on_two_classes',
    'Pre-trained one-shot pooling beats every multi-round rule (NWA, WS, LP, '
    'WC by size and conflation, E = 1) on the two-class split.',
    _compare(
      'the worse of DWC and WS pre-trained over the best multi-round rule',
      claims.Side(min, _PRETRAINED_TWO_CLASS),
      claims.Side(
        max, tuple(grids.E1_CIFAR[rule, 'two_class'] for rule in grids.FIVE)
      ),
      cells.POINTS,
    ),
  ),
  _claim(
    'updating_the_prior_hurts',
    'Updating the prior every round hurts.',
    *(
      _compare(
        f'{rule} with its prior kept over updated, iid',
        _one(grids.E1_CIFAR[rule, 'iid']),
        _one(grids.PRIOR_UPDATED[grids.method(rule), 'iid']),
        cells.POINTS,
      )
      for rule in grids.FIVE
    ),
  ),
  _claim(
    'mc_dropout_on_a_par',
    'MC dropout is at least on a par with deterministic training and with '
    'every VI rule on IID data, and behind VI on the two-class split (behind '
    "WS, the paper's reference there: the best of five would win by chance).",
    _compare(
      'MC dropout over deterministic less one point, iid',
      _one(grids.E1[_DROPOUT, 'iid']),
      _one(grids.E1[_DETERMINISTIC, 'iid']),
      cells.POINTS,
      margin=1.0,
    ),
    _compare(
      'MC dropout over the best VI rule less one point, iid',
      _one(grids.E1[_DROPOUT, 'iid']),
      claims.Side(max, _rules(grids.E1, 'iid', grids.FIVE)),
      cells.POINTS,
      margin=1.0,
    ),
    _compare(
      'WS over MC dropout, two_class',
      claims.Side(claims.only, _rules(grids.E1, 'two_class', ('WS',))),
      _one(grids.E1[_DROPOUT, 'two_class']),
      cells.POINTS,
    ),
  ),
  _claim(
    'weighting_makes_no_difference',
    'The client weighting makes no clear difference: on the two-class split, '
    'less than five points, the spread over seeds that the paper reports.',
    *_equivalent('max_discrepancy'),
    *_equivalent('distance'),
  ),
  _claim(
    'vi_beats_deterministic_on_two_classes',
    'With E = 5, all VI rules (by size, and NWA and LP by distance) beat '
    "deterministic training on the two-class split (the paper's text; its "
    'Table 3 says otherwise).',
    _compare(
      'the worst VI rule over deterministic',
      claims.Side(
        min,
        (
          *_rules(grids.E5, 'two_class', grids.FIVE),
          grids.E5['Flipout NWA distance', 'two_class'],
          grids.E5['Flipout LP distance', 'two_class'],
        ),
      ),
      _one(grids.E5[_DETERMINISTIC, 'two_class']),
      cells.POINTS,
    ),
    expected='does not hold',
  ),
  _claim(
    'epistemic_calibration_at_five_epochs',
    'With E = 5, NWA and LP still lack a calibrated epistemic uncertainty: '
    'discarding by it brings less than a tenth of the possible gain, a flat '
    'curve.',
    *(
      _compare(
        f'a tenth over the better of NWA and LP, {column}',
        claims.Side(min, _rules(grids.E5, column, _SLOW)),
        None,
        _LACK,
        margin=_FLAT,
      )
      for column in _TWO
    ),
  ),
  _claim(
    'nwa_on_a_par_at_five_epochs',
    'With E = 5, NWA is as accurate as every other rule, or more so: less than '
    "a point behind on IID data, five on two classes, the size of the paper's "
    'spread over seeds.',
    *(
      _compare(
        f'NWA over {rule} less {margin:g} points, {column}',
        *(_one(_rules(grids.E5, column, (name,))[0]) for name in ('NWA', rule)),
        cells.POINTS,
        margin=margin,
      )
      for column, margin in _PAR.items()
      for rule in (*_FAST, 'LP')
    ),
  ),
  _claim(
    'deterministic_beats_vi_on_iid',
    'With E = 5, no VI rule (by size) is as accurate as deterministic training '
    'on IID data. No margin: the paper says which is ahead, not by how much.',
    *(
      _compare(
        f'deterministic over {rule}, iid',
        _one(grids.E5[_DETERMINISTIC, 'iid']),
        _one(grids.E5[grids.method(rule), 'iid']),
        cells.POINTS,
      )
      for rule in grids.FIVE
    ),
  ),
  _claim(
    'mc_dropout_converges_slower',
    'On two classes MC dropout converges slower than WS, with E = 1 and E = 5. '
    'No margin: the paper shows curves and gives no size.',
    *(
      _compare(
        f'WS over MC dropout, E = {epochs}, two_class',
        _one(grid[grids.method('WS'), 'two_class']),
        _one(grid[_DROPOUT, 'two_class']),
        cells.SPEED,
      )
      for epochs, grid in ((1, grids.E1), (5, grids.E5))
    ),
  ),
  _claim(
    'pretrained_one_shot_is_calibrated',
    'Pre-trained one-shot pooling is well calibrated on two classes: '
    'discarding by any of its uncertainties brings more than a quarter of the '
    'possible gain, a rise that a figure shows.',
    *(
      _compare(
        f'the worse of DWC and WS over a quarter, {name}',
        claims.Side(min, _PRETRAINED_TWO_CLASS),
        None,
        measure,
        margin=-_RISING,
      )
      for name, measure in _CALIBRATIONS.items()
    ),
  ),
)
