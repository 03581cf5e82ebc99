"""Influence of the prior: our own experiment, `docs/prior.md`.

Pooling rules are compared by prior and partition. The table `choosing` selects
settings on validation examples; `scores` and the claims use test examples.

Notation: K clients with N_k examples each and N in total; prior N(0, s^2), with
s = 1 in the preset; temperature T.
"""

from experiments.harness import cells, claims, tables

_TEXT = 'Ten clients on digits, {} rounds of 5 epochs.'
PAPER = cells.Paper(
  'priors',
  scales={
    # Only the last scores are read.
    'paper': {'eval_every': 20},
    'overnight': {'eval_every': 20},
    'smoke': cells.SMALLEST,
  },
  notes=dict.fromkeys(cells.SCALES, _TEXT.format(20)),
)

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
# The temperature with the lowest NLL in the table `choosing`. For each rule, it
# is the lowest temperature.
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


# Cells of one partition, scored on examples that score no other cell.
_DIGITS = {'dataset': 'experiments.papers.validation_digits:digits'}
CHOOSING = {
  (rule, prior): _cell(
    'choosing',
    f'{rule}, {prior}',
    {**_DIGITS, 'pooling': pooling, **settings},
    {},
  )
  for rule, pooling in cells.RULES.items()
  for prior, settings in {**PRIORS, **TEMPERATURES}.items()
}


_METHODS = {
  f'{rule}, {prior}': {'pooling': pooling, **settings}
  for rule, pooling in cells.RULES.items()
  for prior, settings in {
    **PRIORS,
    'T chosen': {'flipout.temperature': CHOSEN[pooling]},
  }.items()
} | {POINTS: {'variant': 'deterministic'}}
SCORES = {
  (method, column): _cell(column, method, {**split, **settings}, _SHORTER)
  for method, settings in _METHODS.items()
  for column, split in PARTITIONS.items()
}


TABLES = (
  tables.Table(
    PAPER,
    'choosing',
    'the prior on validation examples, Dirichlet 0.5',
    CHOOSING,
    (cells.NLL, cells.ECE),
    cells.FEWER,
  ),
  tables.Table(
    PAPER,
    'scores',
    'the prior on test examples',
    SCORES,
    (cells.ACCURACY, cells.NLL, cells.ECE),
    note={'laptop': _TEXT.format(10)},
  ),
)


def _better(rules, prior):
  """Returns comparisons: `prior` has a lower NLL than KL / N_k."""
  found: list[claims.Comparison] = []
  for rule in rules:
    names = f'{rule}, KL / N_k', f'{rule}, {prior}'
    found += claims.over(SCORES, *names, cells.NLL, where=PARTITIONS)
  return found


CLAIMS = (
  claims.Claim(
    PAPER,
    'averages_stand_for_everybody',
    'Averages of posteriors (NWA, LP) have a lower NLL with KL / N than with '
    'KL / N_k.',
    _better(('NWA', 'LP'), 'KL / N'),
  ),
  claims.Claim(
    PAPER,
    'products_count_the_prior_once',
    'Products of posteriors (WC, conflation) have a lower NLL if the scale of '
    'the prior is multiplied by sqrt(K), which is the prior to the power 1 / '
    'K.',
    _better(('WC', 'Conflation'), 's sqrt(K)'),
  ),
)
