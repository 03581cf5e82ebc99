"""Fischer et al. 2024: Tables 1 to 5, Figures 2 to 9 and the claims.

Deviations that hold for all of them: `docs/results.md`. Table 1's centralized
training is one client with all the data and one epoch a round, so Adam starts
afresh each epoch. The server's pre-training examples of Table 4 are held back
from the clients.
"""

from bfl_tf import plots
from experiments.harness import cells, claims, figures, tables

PAPER = cells.Paper(
  'posterior_pooling',
  scales={
    'paper': {},
    'laptop': {
      'dataset': 'fashion_mnist',
      'train_split': 'train[:10000]',
      'augment': False,
      'model': 'lenet5',
      'num_rounds': 20,
      'eval_every': 1,
      'num_eval_examples': 1000,
      'num_mc_samples': 5,
      'final_num_mc_samples': 20,
    },
    'smoke': {
      'dataset': 'digits',
      'augment': False,
      'model': 'mlp',
      'hidden_units': (8,),
      'num_rounds': 1,
      'num_mc_samples': 2,
      'final_num_mc_samples': 2,
    },
  },
)

_NOTES = {
  'paper': 'The settings of the paper.',
  'laptop': (
    'LeNet-5, the first 10 000 images of Fashion-MNIST, 20 rounds of one '
    'epoch or 8 of five.'
  ),
  'smoke': 'A small network on digits for one round: only that it runs.',
}
_CIFAR_NOTES = _NOTES | {
  'laptop': 'LeNet-5 on the first 10 000 images of CIFAR-10, no augmentation.'
}
_SEEDS = {'paper': 3, 'laptop': 3, 'smoke': 1}
_TWO_SEEDS = {'paper': 2, 'laptop': 3, 'smoke': 1}

_PARTITIONS = {
  'iid': {'partition': 'iid'},
  'two_class': {'partition': 'shards', 'classes_per_client': 2},
  'dirichlet_0.5': {'partition': 'dirichlet_equal', 'alpha': 0.5},
  'dirichlet_5.0': {'partition': 'dirichlet_equal', 'alpha': 5.0},
}
_EPOCHS = {
  1: ({'num_rounds': 400}, {'laptop': {'num_rounds': 20}}),
  5: (
    {'num_rounds': 200, 'local_epochs': 5},
    {'laptop': {'num_rounds': 8}},
  ),
}
_SMOKE = {'smoke': {'num_rounds': 1, 'local_epochs': 1}}
_RULES = {
  'NWA': 'nwa',
  'WS': 'ws',
  'LP': 'lp',
  'WC': 'wc',
  'Conflation': 'conflation',
}
_WEIGHTINGS = {
  'train_size': 'size',
  'max_discrepancy': 'max_discrepancy',
  'distance': 'distance',
}


def _methods():
  """Rows of Tables 2 and 3: published name -> overrides."""
  rows = {
    'Deterministic NWA train_size': {'variant': 'deterministic'},
    'MC Dropout NWA train_size': {'variant': 'mc_dropout'},
  }
  for rule in ('NWA', 'WS', 'LP', 'WC'):
    for name, weighting in _WEIGHTINGS.items():
      rows[f'Flipout {rule} {name}'] = {
        'pooling': _RULES[rule],
        'weighting': weighting,
      }
  rows['Flipout Conflation none'] = {'pooling': 'conflation'}
  return rows


def _cell(folder, method, column, overrides, by_scale):
  name = f'{folder}/{column}/{method.lower().replace(" ", "_")}'
  return cells.Cell(PAPER, name, overrides, {**by_scale, **_SMOKE})


def _grid(epochs):
  settings, by_scale = _EPOCHS[epochs]
  return {
    (method, column): _cell(
      f'e{epochs}', method, column, {**settings, **split, **overrides}, by_scale
    )
    for method, overrides in _methods().items()
    for column, split in _PARTITIONS.items()
  }


_E1, _E5 = _grid(1), _grid(5)

# Table 4: one round of 400 local epochs, from a pre-trained model or not.
_PRETRAINED = {
  'start': ('fine_tune',),
  'num_server_examples': 5000,
  'validation_split': 0.05,
  'server_epochs': 100,
  'server_patience': 10,
}
# The clients' prior is the broadcast posterior, the one that is divided out.
_DWC = {'pooling': 'dwc', 'update_prior': True}
_CIFAR = {
  'dataset': 'cifar10',
  'train_split': 'train[:10000]',
}
_ONE_SHOT = {
  'laptop': {**_CIFAR, 'local_epochs': 80, 'num_server_examples': 1000},
}
_SMOKE_PRETRAINED = {'num_server_examples': 100, 'server_epochs': 1}


def _one_shot(method, overrides):
  pretrained = 'start' in overrides
  by_scale = {'laptop': dict(_ONE_SHOT['laptop'])}
  if not pretrained:
    del by_scale['laptop']['num_server_examples']
  row = {}
  for column, split in _PARTITIONS.items():
    cell = _cell(
      'one_shot',
      method,
      column,
      {'num_rounds': 1, 'local_epochs': 400, **split, **overrides},
      by_scale,
    )
    if pretrained:
      cell.by_scale['smoke'] = {**cell.by_scale['smoke'], **_SMOKE_PRETRAINED}
    row[method, column] = cell
  return row


_T4 = {
  **_one_shot('Flipout DWC pretrain=No', _DWC),
  **_one_shot('Flipout DWC pretrain=Yes', {**_DWC, **_PRETRAINED}),
  **_one_shot('Flipout WS pretrain=Yes', {'pooling': 'ws', **_PRETRAINED}),
}

# Table 5, and the same cells with the prior left alone.
_FIVE = ('NWA', 'WS', 'LP', 'WC', 'Conflation')


def _prior_row(rule, update):
  weighting = 'none' if rule == 'Conflation' else 'train_size'
  return _cell(
    'prior_updated' if update else 'prior_kept',
    f'Flipout {rule} {weighting}',
    'iid',
    {'num_rounds': 400, 'pooling': _RULES[rule], 'update_prior': update},
    {'laptop': {**_CIFAR, 'num_rounds': 20}},
  )


def _prior_name(rule):
  return f'Flipout {rule} {"none" if rule == "Conflation" else "train_size"}'


_T5 = {(_prior_name(rule), 'iid'): _prior_row(rule, True) for rule in _FIVE}
_KEPT = {rule: _prior_row(rule, False) for rule in _FIVE}

_CENTRALIZED = {
  (method, 'centralized'): cells.Cell(
    PAPER,
    f'centralized/{variant}',
    {'num_clients': 1, 'num_rounds': 200, 'variant': variant},
    {'laptop': {'num_rounds': 10}, **_SMOKE},
  )
  for method, variant in {
    'Deterministic': 'deterministic',
    'MC Dropout': 'mc_dropout',
    'Flipout': 'flipout',
  }.items()
}

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

TABLES = (
  tables.Table(
    PAPER, 'table1', 'centralized training', _CENTRALIZED, _SCORES[:1],
    {'paper': 1, 'laptop': 3, 'smoke': 1},
    _NOTES | {'laptop': _NOTES['laptop'] + ' Ten epochs here.'},
  ),
  tables.Table(PAPER, 'table2', 'E = 1', _E1, _SCORES, _SEEDS, _NOTES),
  tables.Table(PAPER, 'table3', 'E = 5', _E5, _SCORES, _SEEDS, _NOTES),
  tables.Table(
    PAPER, 'table4', 'one round, with and without pre-training', _T4,
    _PRETRAINED_SCORES, _SEEDS,
    _CIFAR_NOTES
    | {'laptop': _CIFAR_NOTES['laptop'] + ' 80 local epochs, 1 000 on the '
       'server.'},
  ),
  tables.Table(
    PAPER, 'table5', 'prior updated each round, E = 1', _T5, _SCORES,
    _TWO_SEEDS,
    _CIFAR_NOTES | {'laptop': _CIFAR_NOTES['laptop'] + ' 20 rounds.'},
  ),
)  # fmt: skip


def _panel(grid, column, names):
  return {label: grid[method, column] for label, method in names.items()}


_BY_RULE = {rule: _prior_name(rule) for rule in _FIVE}
_DROPOUT = {
  'MC dropout': 'MC Dropout NWA train_size',
  'WS': 'Flipout WS train_size',
}
_PRETRAINING = {
  'DWC': 'Flipout DWC pretrain=Yes',
  'WS': 'Flipout WS pretrain=Yes',
}


def _figure(number, title, grid, names, draw, columns=tuple(_PARTITIONS)):
  panels = {column: _panel(grid, column, names) for column in columns}
  return figures.Figure(PAPER, f'figure{number}', title, panels, draw, _SEEDS)


_TWO = ('iid', 'two_class')
FIGURES = (
  _figure(2, 'calibration, E = 1', _E1, _BY_RULE, plots.retention, _TWO),
  _figure(3, 'learning curves, E = 1', _E1, _BY_RULE, plots.learning_curve),
  _figure(4, 'calibration, E = 5', _E5, _BY_RULE, plots.retention, _TWO),
  _figure(5, 'learning curves, E = 5', _E5, _BY_RULE, plots.learning_curve),
  _figure(
    6, 'calibration after pre-training', _T4, _PRETRAINING, plots.retention,
    _TWO,
  ),
  _figure(
    7, 'calibration of MC dropout, E = 1', _E1, _DROPOUT, plots.retention, _TWO
  ),
  _figure(
    8, 'learning curves of MC dropout, E = 1', _E1, _DROPOUT,
    plots.learning_curve,
  ),
  _figure(
    9, 'learning curves of MC dropout, E = 5', _E5, _DROPOUT,
    plots.learning_curve,
  ),
)  # fmt: skip

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
  return tuple(grid[_prior_name(rule), column] for rule in rules)


def _mean(values):
  return sum(values) / len(values)


def _compare(statement, left, right, measure, margin=0.0):
  return claims.Comparison(statement, left, right, measure, margin)


_FAST, _SLOW = ('WS', 'WC', 'Conflation'), ('NWA', 'LP')


def _claim(name, statement, *comparisons, **more):
  return claims.Claim(PAPER, name, statement, comparisons, _SEEDS, **more)


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
        claims.Side(min, _rules(_E1, column, _FAST)),
        claims.Side(claims.only, _rules(_E1, column, ('NWA',))),
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
        claims.Side(min, _rules(_E1, column, ('NWA', *_FAST))),
        claims.Side(claims.only, _rules(_E1, column, ('LP',))),
        _FINAL,
      ),
    ),
  ),
  _claim(
    'rules_together_at_five_epochs',
    'With E = 5 the rules come together.',
    _compare(
      'the spread over rules at E = 1 over that at E = 5, iid',
      claims.Side(claims.spread, _rules(_E1, 'iid', _FIVE)),
      claims.Side(claims.spread, _rules(_E5, 'iid', _FIVE)),
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
        claims.Side(min, _rules(_E1, column, _FAST)),
        claims.Side(max, _rules(_E1, column, _SLOW)),
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
        claims.Side(claims.only, (_T4['Flipout DWC pretrain=Yes', column],)),
        claims.Side(claims.only, (_T4['Flipout DWC pretrain=No', column],)),
        _FINAL,
        margin=-10.0,
      ),
    ),
    _compare(
      'DWC pre-trained is within 5 points of WS pre-trained, iid',
      claims.Side(claims.only, (_T4['Flipout DWC pretrain=Yes', 'iid'],)),
      claims.Side(claims.only, (_T4['Flipout WS pretrain=Yes', 'iid'],)),
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
          _T4['Flipout DWC pretrain=Yes', 'two_class'],
          _T4['Flipout WS pretrain=Yes', 'two_class'],
        ),
      ),
      claims.Side(
        max,
        tuple(
          cells.Cell(
            PAPER,
            f'two_class_cifar/{rule.lower()}',
            {
              'num_rounds': 400,
              'pooling': _RULES[rule],
              **_PARTITIONS['two_class'],
            },
            {'laptop': {**_CIFAR, 'num_rounds': 20}, **_SMOKE},
          )
          for rule in _FIVE
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
        claims.Side(claims.only, (_KEPT[rule],)),
        claims.Side(claims.only, (_T5[_prior_name(rule), 'iid'],)),
        _FINAL,
      )
      for rule in _FIVE
    ),
  ),
  _claim(
    'mc_dropout_on_a_par',
    'MC dropout is at least on a par with deterministic training and with '
    'every VI rule on IID data, and behind the best VI rule on the two-class '
    'split.',
    _compare(
      'MC dropout over deterministic less one point, iid',
      claims.Side(claims.only, (_E1['MC Dropout NWA train_size', 'iid'],)),
      claims.Side(claims.only, (_E1['Deterministic NWA train_size', 'iid'],)),
      _FINAL,
      margin=1.0,
    ),
    _compare(
      'MC dropout over the best VI rule less one point, iid',
      claims.Side(claims.only, (_E1['MC Dropout NWA train_size', 'iid'],)),
      claims.Side(max, _rules(_E1, 'iid', _FIVE)),
      _FINAL,
      margin=1.0,
    ),
    _compare(
      'the best VI rule over MC dropout, two_class',
      claims.Side(max, _rules(_E1, 'two_class', _FIVE)),
      claims.Side(
        claims.only, (_E1['MC Dropout NWA train_size', 'two_class'],)
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
            _E1[f'Flipout {rule} {name}', 'two_class'] for name in _WEIGHTINGS
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
          *_rules(_E5, 'two_class', _FIVE),
          _E5['Flipout NWA distance', 'two_class'],
          _E5['Flipout LP distance', 'two_class'],
        ),
      ),
      claims.Side(
        claims.only, (_E5['Deterministic NWA train_size', 'two_class'],)
      ),
      _FINAL,
    ),
    expected='does not hold',
  ),
)
