"""The cells of Fischer et al. 2024, by method (row) and setting (column)."""

from experiments.harness import cells

PAPER = cells.Paper(
  'posterior_pooling',
  citation='Fischer et al. 2024',
  scales={
    'laptop': {
      'dataset': 'fashion_mnist',
      'train_split': 'train[:5000]',
      'test_split': 'test[:5000]',
      'augment': False,
      'model': 'lenet5',
      'num_rounds': 20,
      'eval_every': 1,
      'num_eval_examples': 1000,
      'num_mc_samples': 5,
      'final_num_mc_samples': 10,
    },
    # The paper's data, batch size and rates. Evaluations before the last have
    # few samples, so that they take a tenth of a run.
    'overnight': {
      'model': 'lenet5',
      'eval_every': 2,
      'num_mc_samples': 5,
    },
    'smoke': cells.SMALLEST,
  },
  notes={
    'paper': 'The settings of the paper, and our own where the paper gives '
    'none (docs/results/posterior_pooling.md).'
  },
)

PARTITIONS = {
  'iid': {'partition': 'iid'},
  'two_class': {'partition': 'shards', 'shards.classes_per_client': 2},
  'dirichlet_0.5': {
    'partition': 'dirichlet',
    'dirichlet.sizes': 'equal',
    'dirichlet.alpha': 0.5,
  },
  'dirichlet_5.0': {
    'partition': 'dirichlet',
    'dirichlet.sizes': 'equal',
    'dirichlet.alpha': 5.0,
  },
}
_EPOCHS = {
  1: (
    {'num_rounds': 400},
    {'laptop': {'num_rounds': 20}, 'overnight': {'num_rounds': 100}},
  ),
  5: (
    {'num_rounds': 200, 'local_epochs': 5},
    {'laptop': {'num_rounds': 8}, 'overnight': {'num_rounds': 40}},
  ),
}
WEIGHTINGS = {
  'train_size': 'size',
  'max_discrepancy': 'max_discrepancy',
  'distance': 'distance',
}


def _rows():
  """Returns the overrides of the rows of Tables 2 and 3, by published name."""
  rows = {
    'Deterministic NWA train_size': {'variant': 'deterministic'},
    'MC Dropout NWA train_size': {'variant': 'mc_dropout'},
  }
  for rule in ('NWA', 'WS', 'LP', 'WC'):
    for name, weighting in WEIGHTINGS.items():
      rows[f'Flipout {rule} {name}'] = {
        'pooling': cells.RULES[rule],
        'weighting': weighting,
      }
  rows['Flipout Conflation none'] = {'pooling': 'conflation'}
  return rows


def _cell(folder, row, column, *settings):
  name = f'{folder}/{column}/{row.lower().replace(" ", "_")}'
  return cells.Cell(PAPER, name, *settings)


def _grid(epochs):
  settings, by_scale = _EPOCHS[epochs]
  return {
    (row, column): _cell(
      f'e{epochs}', row, column, {**settings, **split, **overrides}, by_scale
    )
    for row, overrides in _rows().items()
    for column, split in PARTITIONS.items()
  }


E1, E5 = _grid(1), _grid(5)

# Table 4: one round of 400 local epochs, with and without pre-training.
_PRETRAINED = {
  'start': ('fine_tune',),
  'num_server_examples': 5000,
  'validation_split': 0.05,
  'fine_tune.epochs': 100,
  'fine_tune.patience': 10,
}
# The clients' prior is the broadcast posterior, which DWC divides out.
_DWC = {'pooling': 'dwc', 'flipout.update_prior': True}
CIFAR = {'dataset': 'cifar10'}
_ONE_SHOT = {'num_rounds': 1, 'local_epochs': 400}
_AT_LAPTOP = {**CIFAR, 'local_epochs': 40}


def _one_shot(row, overrides, laptop=(), smoke=()):
  return {
    (row, column): _cell(
      'one_shot', row, column, {**_ONE_SHOT, **split, **overrides},
      {'laptop': {**_AT_LAPTOP, **dict(laptop)}, 'smoke': dict(smoke)},
    )
    for column, split in PARTITIONS.items()
  }  # fmt: skip


def _pretrained(row, overrides):
  return _one_shot(
    row,
    {**_PRETRAINED, **overrides},
    laptop={'num_server_examples': 500},
    smoke={'num_server_examples': 100, 'fine_tune.epochs': 1},
  )


ONE_SHOT = {
  **_one_shot('Flipout DWC pretrain=No', _DWC),
  **_pretrained('Flipout DWC pretrain=Yes', _DWC),
  **_pretrained('Flipout WS pretrain=Yes', {'pooling': 'ws'}),
}


def method(rule):
  """Returns the row of a rule with weights by size; conflation has none."""
  return f'Flipout {rule} {"none" if rule == "Conflation" else "train_size"}'


def _table2_with(folder, rule, column, changes, row='', **by_scale):
  cell = E1[method(rule), column]
  return _cell(
    folder,
    row or method(rule),
    column,
    {**cell.overrides, **changes},
    {**cell.by_scale, **by_scale},
  )


def _rules_with(folder, changes, columns=tuple(PARTITIONS), **by_scale):
  return {
    (method(rule), column): _table2_with(
      folder, rule, column, changes, **by_scale
    )
    for rule in cells.RULES
    for column in columns
  }


# The KL term is divided by the number of all clients' examples. With the
# client's own number, averages lose by round 100 what they learned.
KL_ALL = _rules_with('e1_kl_all', {'flipout.kl_examples': 'all'})
# The form of the KL term that was inferred from Table 2's averages on IID data.
MEAN = _rules_with('e1_mean', PAPER.flags('dialects/mean'))

# Laptop scale uses CIFAR-10, as for Table 4.
_AS_TABLE4 = {**CIFAR, 'num_rounds': 20}
PRIOR_UPDATED = _rules_with(
  'prior_updated', {'flipout.update_prior': True}, ('iid',), laptop=_AS_TABLE4
)
# Baselines of Tables 4 and 5; those of Table 2 if they are on CIFAR-10.
E1_CIFAR = _rules_with('e1_cifar', {}, ('iid', 'two_class'), laptop=_AS_TABLE4)

# Our experiment: the KL term of other libraries, on Table 2's IID data.
DIALECTS = {
  (f'{dialect} {rule}', 'iid'): _table2_with(
    'dialects',
    rule,
    'iid',
    PAPER.flags(f'dialects/{dialect}'),
    f'{dialect} {rule}',
    overnight={'num_rounds': 30},
  )
  for dialect in ('mean_over_batch', 'tied', 'capped', 'sgd')
  for rule in ('NWA', 'LP', 'WS', 'Conflation')
}
AS_PUBLISHED = {row: method(row.split()[1]) for row, _ in DIALECTS}

CENTRALIZED = {
  (row, 'centralized'): cells.Cell(
    PAPER,
    f'centralized/{variant}',
    {'num_clients': 1, 'num_rounds': 200, 'variant': variant},
    {'laptop': {'num_rounds': 10}, 'overnight': {'num_rounds': 100}},
  )
  for row, variant in {
    'Deterministic': 'deterministic',
    'MC Dropout': 'mc_dropout',
    'Flipout': 'flipout',
  }.items()
}
