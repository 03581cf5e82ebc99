"""Rules and methods at equal compute: our own experiment.

Under every method, a client trains 400 epochs on the same examples, in 20
rounds or in one. The table `choosing` selects learning rates on validation
examples of the harder split. Other settings are those of presets.
"""

from bfl_tf import run_files
from bfl_tf.runs import checkpoints
from experiments.harness import cells, tables
from experiments.papers import uncertainty

PAPER = cells.Paper(
  'equal_work',
  scales={
    **{scale: {} for scale in cells.SCALES},
    # SWAG needs two steps, also of a client with five examples.
    'smoke': {**cells.SMALLEST, 'batch_size': 4},
  },
  notes=dict.fromkeys(cells.SCALES, 'Ten clients on digits, 400 epochs each.'),
)
_SPLITS = {'IID': {'partition': 'iid'}, 'Dirichlet 0.1': {}}
_ONE_ROUND = {'num_rounds': 1, 'local_epochs': 400}
# Scored by samples of the pooled posterior, as in configs/ivon.flags.
_SAMPLED = {
  'refine': ('ensemble',),
  'ensemble.groups': 'S',
  'ensemble.num_samples': 30,
  'predictor': 'S',
}
_CLIENTS = {
  'points': {},
  # Dropout rate of configs/posterior_pooling.flags.
  'MC dropout': {'variant': 'mc_dropout', 'mc_dropout.rate': 0.2},
  # As in configs/quickstart.flags.
  'Flipout': {
    'variant': 'flipout',
    'flipout.prior_scale': 1.0,
    'flipout.temperature': 0.003,
  },
  # As in configs/fl_swag.flags, at half the rank for clients of five examples.
  'SWAG': {
    'client_parts': ('swag',),
    'client_optimizer': 'sgd',
    'swag.burn_in': 0.5,
    'swag.period': 2,
    'swag.rank': 5,
    'swag.min_scale': 0.003,
    **_SAMPLED,
  },
  # As in configs/ivon.flags.
  'IVON': {
    'client_optimizer': 'ivon',
    'ivon.initial_scale': 0.05,
    'ivon.beta_2': 0.999,
    'ivon.prior_scale': 1.0,
    'ivon.temperature': 0.003,
    **_SAMPLED,
  },
  # As in configs/pvi.flags.
  'PVI': {
    'variant': 'flipout',
    'flipout.prior_scale': 1.0,
    'client_parts': ('pvi',),
    'pvi.damping': 0.2,
    'pooling': 'dwc',
  },
  # As in configs/board/fedbe.flags, with 40 server steps per round.
  'FedBE': {
    'refine': ('distil',),
    'ensemble.groups': 'A+C+S',
    'distil.teachers': 'A+C+S',
    'ensemble.num_samples': 10,
    'ensemble.posterior': 'gaussian',
    'distil.sharpening': 2.0,
    'distil.optimizer': 'sgd',
    'distil.epochs': 20,
    'distil.batch_size': 128,
  },
}
# Flag of the learning rate and candidate rates, by kind of client.
_RATE = 'client_learning_rate'
RATES = dict.fromkeys(_CLIENTS, (_RATE, (0.0003, 0.001, 0.003, 0.01, 0.03))) | {
  'SWAG': (_RATE, (0.03, 0.1, 0.3, 1.0)),
  'IVON': (_RATE, (0.0001, 0.0003, 0.001, 0.003, 0.01)),
  'FedBE': ('distil.learning_rate', (0.0001, 0.001, 0.01)),
}
# Rates with the lowest NLL in the table `choosing`.
CHOSEN = {
  'points': 0.01,
  'MC dropout': 0.03,
  'Flipout': 0.001,
  'SWAG': 0.3,
  'IVON': 0.0003,
  'PVI': 0.001,
  'FedBE': 0.0001,
}
_RULES = {
  'points': ('NWA',),
  'MC dropout': ('NWA',),
  'Flipout': ('NWA', 'LP', 'LLP', 'WC', 'Conflation'),
  'SWAG': ('NWA', 'product'),
  'IVON': ('NWA',),
}
_SHORT = (
  'points, NWA', 'Flipout, NWA', 'Flipout, WC', 'Flipout, Conflation',
  'SWAG, NWA', 'SWAG, product', 'IVON, NWA', 'FedBE',
)  # fmt: skip


def _cell(*words, **overrides):
  path = '/'.join(word.replace(', ', '_').replace(' ', '_') for word in words)
  return cells.Cell(PAPER, path.lower(), overrides)


def _client(kind):
  # FedBE's clients are deterministic.
  rate = {_RATE: CHOSEN['points']} if kind == 'FedBE' else {}
  return {**_CLIENTS[kind], **rate, RATES[kind][0]: CHOSEN[kind]}


METHODS = {
  **{
    f'{kind}, {rule}': {**_client(kind), 'pooling': rule.lower()}
    for kind, rules in _RULES.items()
    for rule in rules
  },
  **{kind: _client(kind) for kind in ('PVI', 'FedBE')},
}
CHOOSING = {
  (kind, f'{rate}'): _cell(
    'choosing', kind, f'{rate}', **{**_client(kind), flag: rate},
    validation_split=0.2,
  )
  for kind, (flag, rates) in RATES.items()
  for rate in rates
}  # fmt: skip
SCORES = {
  (method, split): _cell(split, method, **dealt, **settings)
  for method, settings in METHODS.items()
  for split, dealt in _SPLITS.items()
}
_ONE = {
  (f'one round: {method}', split): _cell(
    split, 'one round', method, **dealt, **METHODS[method], **_ONE_ROUND
  )
  for method in _SHORT
  for split, dealt in _SPLITS.items()
}
SCORES |= _ONE
# The ensemble of the models of FedBE's clients.
SCORES |= {
  ('one round: clients as an ensemble', split): (
    _ONE['one round: FedBE', split].reading('C')
  )
  for split in _SPLITS
}


def _kept(directory, predictor):
  del predictor
  # The file of memories has two places per client.
  memories = directory / run_files.MEMORIES
  half = memories.stat().st_size / 2 if memories.exists() else 0.0
  return (directory / run_files.CHECKPOINT).stat().st_size + half


def _seconds(directory, predictor):
  # The first round includes tracing. One-round runs therefore have no value.
  least = cells.column('train_seconds', min, first_round=2)
  return 20 * least(directory, predictor='')


_MEASURES = (
  cells.ACCURACY,
  cells.NLL,
  cells.ECE,
  uncertainty.measure('AUROC', 'far_fashion_mnist_normalized_entropy_auroc'),
  uncertainty.measure('near', 'near_mnist_normalized_entropy_auroc'),
  uncertainty.measure('AURC', 'aurc_normalized_entropy', digits=4),
  cells.Measure('seconds', _seconds, digits=1),
  cells.Measure(
    'KB up per round', cells.column('bytes_up', max), factor=1e-3, digits=0
  ),
  cells.Measure('KB kept', _kept, factor=1e-3, digits=0),
)
TABLES = (
  tables.Table(
    PAPER,
    'choosing',
    'learning rates chosen on validation examples, Dirichlet 0.1',
    CHOOSING,
    (cells.Measure('NLL (nats)', cells.final('validation_nll'), digits=3),),
    cells.ONE,
  ),
  tables.Table(
    PAPER, 'scores', 'rules and methods at equal compute', SCORES, _MEASURES
  ),
)
