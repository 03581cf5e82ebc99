"""What Fischer et al. 2024 claim, each with a test fixed beforehand."""

from experiments.artifacts.posterior_pooling import grids
from experiments.harness import cells, claims

# Measures of the claims.
_SPEED = cells.Measure(
  'points of mean accuracy over rounds',
  cells.column('accuracy', cells.after_start),
  factor=100,
)
_FINAL = cells.Measure(
  'points of accuracy', cells.final('accuracy'), factor=100
)
_CALIBRATION = cells.Measure(
  'of the possible gain by epistemic uncertainty',
  cells.ranking_gain('epistemic_uncertainty'),
)


def _rules(grid, column, rules):
  return tuple(grid[grids.method(rule), column] for rule in rules)


def _mean(values):
  return sum(values) / len(values)


def _compare(statement, left, right, measure, margin=0.0):
  return claims.Comparison(statement, left, right, measure, margin)


_TWO = ('iid', 'two_class')
_FAST, _SLOW = ('WS', 'WC', 'Conflation'), ('NWA', 'LP')


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
        _SPEED,
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
        _FINAL,
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
      _FINAL,
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
        claims.Side(
          claims.only, (grids.ONE_SHOT['Flipout DWC pretrain=Yes', column],)
        ),
        claims.Side(
          claims.only, (grids.ONE_SHOT['Flipout DWC pretrain=No', column],)
        ),
        _FINAL,
        margin=-10.0,
      ),
    ),
    _compare(
      'DWC pre-trained is within 5 points of WS pre-trained, iid',
      claims.Side(
        claims.only, (grids.ONE_SHOT['Flipout DWC pretrain=Yes', 'iid'],)
      ),
      claims.Side(
        claims.only, (grids.ONE_SHOT['Flipout WS pretrain=Yes', 'iid'],)
      ),
      _FINAL,
      margin=5.0,
    ),
  ),
  _claim(
    'pretrained_one_shot_on_two_classes',
    'Pre-trained one-shot pooling beats every multi-round rule on the '
    'two-class split.',
    _compare(
      'the worse of DWC and WS pre-trained over the best multi-round rule',
      claims.Side(
        min,
        (
          grids.ONE_SHOT['Flipout DWC pretrain=Yes', 'two_class'],
          grids.ONE_SHOT['Flipout WS pretrain=Yes', 'two_class'],
        ),
      ),
      claims.Side(
        max,
        tuple(
          cells.Cell(
            grids.PAPER,
            f'two_class_cifar/{rule.lower()}',
            {
              'num_rounds': 400,
              'pooling': grids.RULES[rule],
              **grids.PARTITIONS['two_class'],
            },
            {'laptop': {**grids.CIFAR, 'num_rounds': 20}, **grids.SMOKE},
          )
          for rule in grids.FIVE
        ),
      ),
      _FINAL,
    ),
  ),
  _claim(
    'updating_the_prior_hurts',
    'Updating the prior every round hurts.',
    *(
      _compare(
        f'{rule} with its prior kept over updated, iid',
        claims.Side(claims.only, (grids.PRIOR_KEPT[rule],)),
        claims.Side(
          claims.only, (grids.PRIOR_UPDATED[grids.method(rule), 'iid'],)
        ),
        _FINAL,
      )
      for rule in grids.FIVE
    ),
  ),
  _claim(
    'mc_dropout_on_a_par',
    'MC dropout is at least on a par with deterministic training and with '
    'every VI rule on IID data, and behind the best VI rule on the two-class '
    'split.',
    _compare(
      'MC dropout over deterministic less one point, iid',
      claims.Side(claims.only, (grids.E1['MC Dropout NWA train_size', 'iid'],)),
      claims.Side(
        claims.only, (grids.E1['Deterministic NWA train_size', 'iid'],)
      ),
      _FINAL,
      margin=1.0,
    ),
    _compare(
      'MC dropout over the best VI rule less one point, iid',
      claims.Side(claims.only, (grids.E1['MC Dropout NWA train_size', 'iid'],)),
      claims.Side(max, _rules(grids.E1, 'iid', grids.FIVE)),
      _FINAL,
      margin=1.0,
    ),
    _compare(
      'the best VI rule over MC dropout, two_class',
      claims.Side(max, _rules(grids.E1, 'two_class', grids.FIVE)),
      claims.Side(
        claims.only, (grids.E1['MC Dropout NWA train_size', 'two_class'],)
      ),
      _FINAL,
    ),
  ),
  _claim(
    'weighting_makes_no_difference',
    'The client weighting makes no clear difference.',
    *(
      _compare(
        f'{rule}: three points over the spread over weightings, two_class',
        claims.Side(
          lambda values: -claims.spread(values),
          tuple(
            grids.E1[f'Flipout {rule} {name}', 'two_class']
            for name in grids.WEIGHTINGS
          ),
        ),
        None,
        _FINAL,
        margin=3.0,
      )
      for rule in ('NWA', 'WS', 'WC')
    ),
  ),
  _claim(
    'vi_beats_deterministic_on_two_classes',
    'With E = 5, all VI rules beat deterministic training on the two-class '
    "split (the paper's text; its Table 3 says otherwise).",
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
      claims.Side(
        claims.only, (grids.E5['Deterministic NWA train_size', 'two_class'],)
      ),
      _FINAL,
    ),
    expected='does not hold',
  ),
)
