"""The cells: pooling rules by prior, over partitions.

Notation: K clients, of N_k examples each and N together; prior N(0, s^2), s = 1
in the preset; T the temperature.
"""

from experiments.harness import cells

PAPER = cells.Paper(
  'priors',
  scales={
    # Only the last scores are read.
    'paper': {'eval_every': 20},
    'overnight': {'eval_every': 20},
    'laptop': {},
    'smoke': {**cells.SMALLEST, 'dataset': 'digits'},
  },
)
SEEDS = {**dict.fromkeys(cells.SCALES, 3), 'smoke': 1}
# Of the choice.
FEWER = {**SEEDS, 'laptop': 1}

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
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01, 0.003)
TEMPERATURES = {f'T = {t}': {'flipout.temperature': t} for t in _TEMPERATURES}
# Of `TEMPERATURES`, the one of the least NLL in the table `choosing`: for each
# rule the coldest that was tried.
CHOSEN = dict.fromkeys(cells.RULES.values(), 0.003)
POINTS = 'Deterministic'
_SHORTER = {
  'laptop': {'num_rounds': 10, 'eval_every': 10, 'checkpoint_every': 10}
}
_NAMES = str.maketrans(
  {' ': '_', '/': None, '=': None, '(': None, ')': None, ',': None}
)


def _cell(folder, name, overrides, by_scale):
  path = f'{folder}/{name.translate(_NAMES).lower()}'
  return cells.Cell(PAPER, path, overrides, by_scale)


# On examples that no other cell is scored on; one partition.
_DIGITS = {'dataset': 'experiments.artifacts.priors.choosing:digits'}
CHOOSING = {
  (rule, prior): _cell(
    'choosing',
    f'{rule}, {prior}',
    {**_DIGITS, 'pooling': pooling, **settings},
    {'smoke': {'dataset': 'digits'}},
  )
  for rule, pooling in cells.RULES.items()
  for prior, settings in {**PRIORS, **TEMPERATURES}.items()
}


def _priors(pooling):
  tempered = {'flipout.temperature': CHOSEN[pooling]}
  return {**PRIORS, 'T chosen': tempered}


_METHODS = {
  f'{rule}, {prior}': {'pooling': pooling, **settings}
  for rule, pooling in cells.RULES.items()
  for prior, settings in _priors(pooling).items()
} | {POINTS: {'variant': 'deterministic'}}
SCORES = {
  (method, column): _cell(column, method, {**split, **settings}, _SHORTER)
  for method, settings in _METHODS.items()
  for column, split in PARTITIONS.items()
}
