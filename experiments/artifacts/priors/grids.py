"""The cells: pooling rules by prior, over partitions.

Notation: K clients, of N_k examples each and N together; prior N(0, s^2), s = 1
in the preset; T the temperature.
"""

from experiments.harness import cells

PAPER = cells.Paper(
  'priors',
  scales={
    'paper': {},
    'overnight': {},
    'laptop': {},
    'smoke': {
      'dataset': 'digits',
      'mlp.hidden_units': (8,),
      'num_rounds': 1,
      'local_epochs': 1,
      'num_mc_samples': 2,
      'final_num_mc_samples': 2,
    },
  },
)
SEEDS = {**dict.fromkeys(cells.SCALES, 3), 'smoke': 1}

RULES = {
  'NWA': 'nwa',
  'WS': 'ws',
  'LP': 'lp',
  'WC': 'wc',
  'Conflation': 'conflation',
}
PARTITIONS = {
  'iid': {'partition': 'iid'},
  'dirichlet_0.5': {},
  'two_class': {'partition': 'shards', 'shards.classes_per_client': 2},
}
_NUM_CLIENTS = 10
PRIORS = {
  'KL / N_k': {},
  'KL / N': {'flipout.kl_examples': 'all'},
  's sqrt(K)': {'flipout.prior_scale': _NUM_CLIENTS**0.5},
}
TEMPERATURES = {
  f'T = {t}': {'flipout.temperature': t} for t in (0.3, 0.1, 0.03, 0.01)
}
# Of `TEMPERATURES`, the one of the least mean NLL in the table `choosing`.
CHOSEN = {'nwa': 0.1, 'ws': 0.1, 'lp': 0.1, 'wc': 0.1, 'conflation': 0.1}
POINTS = 'Deterministic'


def _cell(*names, **overrides):
  name = '/'.join(names).lower()
  for old, new in ((' / ', '_'), (' = ', ''), (' ', '_'), ('(', ''), (')', '')):
    name = name.replace(old, new)
  return cells.Cell(PAPER, name, overrides)


# On examples that no other cell is scored on, one partition.
CHOOSING = {
  (rule, prior): _cell(
    'choosing',
    rule,
    prior,
    dataset='experiments.artifacts.priors.choosing:digits',
    pooling=pooling,
    **settings,
  )
  for rule, pooling in RULES.items()
  for prior, settings in {**PRIORS, **TEMPERATURES}.items()
}


def _priors(pooling):
  tempered = {'flipout.temperature': CHOSEN[pooling]}
  return {**PRIORS, 'T chosen': tempered}


SCORES = {
  (f'{rule}, {prior}', column): _cell(
    column, rule, prior, pooling=pooling, **split, **settings
  )
  for rule, pooling in RULES.items()
  for prior, settings in _priors(pooling).items()
  for column, split in PARTITIONS.items()
} | {
  (POINTS, column): _cell(column, POINTS, variant='deterministic', **split)
  for column, split in PARTITIONS.items()
}
