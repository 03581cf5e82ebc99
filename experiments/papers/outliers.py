"""Malicious clients by pooling rule and weighting: our own experiment.

A fraction of twenty variational clients flips its labels, multiplies its update
by -5, or sends noise. The defenses are robust rules and two weightings that
were proposed against outliers: maximum discrepancy and distance.
"""

from experiments.harness import cells, tables

_TEXT = 'Twenty clients on digits, IID, {} rounds of 5 epochs.'
PAPER = cells.Paper(
  'outliers',
  scales={
    'paper': {'eval_every': 20},
    'overnight': {'eval_every': 20},
    # Only the last scores are read.
    'laptop': {'num_rounds': 10, 'eval_every': 10, 'checkpoint_every': 10},
    'smoke': cells.SMALLEST,
  },
  notes={
    **dict.fromkeys(cells.SCALES, _TEXT.format(20)),
    'laptop': _TEXT.format(10),
  },
)
FRACTIONS = (0.1, 0.2, 0.4)
METHODS = {
  'NWA, size': {'pooling': 'nwa'},
  'NWA, max discrepancy': {'pooling': 'nwa', 'weighting': 'max_discrepancy'},
  'NWA, distance': {'pooling': 'nwa', 'weighting': 'distance'},
  'LP, size': {'pooling': 'lp'},
  'WC, max discrepancy': {'pooling': 'wc', 'weighting': 'max_discrepancy'},
  'Conflation': {'pooling': 'conflation'},
  'Median': {'pooling': 'median'},
  'Trimmed mean': {'pooling': 'trimmed_mean'},
  'Multi-Krum': {'pooling': 'multi_krum'},
}
_KINDS = {
  'flipped labels': 'label_flip',
  'scaled by -5': 'scaled_update',
  'random model': 'random_model',
}
COLUMNS = {'none': {}} | {
  f'{title}, {fraction:.0%}': {
    'attack': (kind,),
    f'{kind}.fraction': fraction,
  }
  for title, kind in _KINDS.items()
  for fraction in FRACTIONS
}
_NAMES = str.maketrans({' ': '_', ',': None, '%': None, '-': None})

TABLES = (
  tables.Table(
    PAPER,
    'rules',
    'malicious clients, by rule and weighting',
    {
      (method, column): cells.Cell(
        PAPER,
        f'{column}/{method}'.translate(_NAMES).lower(),
        {**flags, **changes},
      )
      for method, flags in METHODS.items()
      for column, changes in COLUMNS.items()
    },
    seeds=cells.FEWER,
  ),
)
