"""Distance of pooled posteriors from the true posterior: our own experiment.

Each rule has its prior of `docs/prior.md`: KL / N for averages, prior^(1/K) for
products, and the whole prior, divided out, for `dwc` and PVI. Deterministic
models have the corresponding weight decay. `Centralized` is variational
inference on all examples.
"""

import dataclasses

from bfl_tf import plots
from bfl_tf.plots import canvas
from experiments.harness import cells, figures, tables

PAPER = cells.Paper(
  'distance',
  scales={
    'smoke': {'num_rounds': 1, 'local_epochs': 25, 'Distance.samples': 1000},
  },
  notes=dict.fromkeys(
    cells.SCALES,
    'Ten clients, logistic regression, prior N(0, 1), 20 rounds of about 150 '
    'steps. p is HMC of all examples, q the model.',
  ),
)
# Number of training examples, and local epochs for about 150 steps per round.
_SETS = {'breast_cancer': (455, 75), 'digits': (1438, 25)}
_PARTITIONS = {'IID': {}, 'Dirichlet 0.1': {'partition': 'dirichlet'}}
# Suffix of the chains' columns, by row.
_FLOORS = {
  'HMC': 'hmc',
  'half of HMC': 'halves',
  'best diagonal by KL[q, p]': 'factorised',
}
# Methods in the two rows of the figure.
_PANELS = {
  'Averages and PVI': ('NWA', 'LP', 'LLP', 'IVON, NWA', 'PVI', 'Centralized'),
  'Products, DWC and FedAvg': (
    'WS',
    'Conflation',
    'SWAG, product',
    'DWC',
    'FedAvg',
    'Centralized',
  ),
}
_SHOWN = {name for names in _PANELS.values() for name in names}
_BY_ROUND = {
  'w2_diagonal': 'Wasserstein-2 distance of marginals',
  'tv_test': 'Total variation of predictions, test inputs',
}
_AVERAGE = {'flipout.kl_examples': 'all'}
_PRODUCT = {'flipout.prior_scale': 10**0.5}
_LAPLACE = {
  'variant': 'deterministic',
  'client_optimizer': 'laplace',
  'laplace.covariance': 'full',
  'pooling': 'product',
}


def _points(examples):
  return {'variant': 'deterministic', 'client_weight_decay': 1 / examples}


def _methods(examples):
  averages = {
    'NWA': 'nwa',
    'LP': 'lp',
    'LLP': 'llp',
    'Wasserstein': 'wasserstein',
    'Log variance': 'log_variance',
  }
  products = {'WS': 'ws', 'WC': 'wc', 'Conflation': 'conflation'}
  return {
    **{name: {'pooling': r, **_AVERAGE} for name, r in averages.items()},
    **{name: {'pooling': r, **_PRODUCT} for name, r in products.items()},
    # Its first prior is the first broadcast, with the width of the true prior.
    'DWC': {
      'pooling': 'dwc',
      'flipout.update_prior': True,
      'flipout.initial_scale': 1.0,
    },
    'PVI': {'client_parts': ('pvi',), 'flipout.initial_scale': 1.0},
    'IVON, NWA': {
      'variant': 'deterministic',
      'client_optimizer': 'ivon',
      'ivon.kl_examples': 'all',
      'ivon.beta_2': 0.999,
    },
    'SWAG, product': {
      **_points(examples),
      'client_parts': ('swag',),
      'swag.burn_in': 0.5,
      'swag.period': 2,
      'swag.rank': 5,
      'client_optimizer': 'sgd',
      'client_learning_rate': 0.1,
      'pooling': 'product',
    },
    'Laplace, product': _LAPLACE | {'laplace.prior_scale': 10**0.5},
    'Laplace of all data': _LAPLACE | {'num_clients': 1},
    'FedAvg': _points(examples),
    'Centralized': {'num_clients': 1},
  }


def _grid(data, examples, epochs):
  common = {'dataset': data, 'Distance.dataset': data, 'local_epochs': epochs}
  grid = {}
  for split, dealt in _PARTITIONS.items():
    for method, settings in _methods(examples).items():
      # All partitions are equal for one client.
      if settings.get('num_clients') == 1 and dealt:
        grid[method, split] = grid[method, 'IID']
        continue
      path = f'{data}/{split}/{method}'.lower()
      path = path.replace(', ', '_').replace(' ', '_')
      cell = cells.Cell(PAPER, path, {**common, **dealt, **settings})
      grid[method, split] = cell
  # All runs have the same values of the chains.
  for name, ending in _FLOORS.items():
    grid[name, 'IID'] = grid['NWA', 'IID'].reading(ending)
  return grid


def _measure(label, name, digits=3):
  return cells.Measure(
    label, cells.column(name, lambda values: values[-1]), digits=digits
  )


_GRIDS = {data: _grid(data, *rest) for data, rest in _SETS.items()}
_DIAGONAL = (
  _measure('W2, diagonal', 'w2_diagonal', 2),
  _measure('KL[q, p], diagonal', 'kl_to_truth_diagonal', 1),
)
_WHOLE = (
  _measure('W2', 'w2', 2),
  _measure('KL[q, p]', 'kl_to_truth', 1),
)
_PREDICTIVE = (
  _measure('TV, test', 'tv_test'),
  _measure('TV, shifted', 'tv_shifted'),
  _measure('joint NLL', 'joint_nll'),
)


_OF_CHAINS = dataclasses.replace(
  PAPER,
  scales={
    'smoke': {
      'num_rounds': 4,
      'eval_every': 4,
      'Distance.number': 2,
      'Distance.samples': 1000,
    },
  },
)


def _langevin(rounds, split):
  """The method `fa_ld`, with short rounds and more samples."""
  settings = {
    'dataset': 'digits',
    'Distance.dataset': 'digits',
    **_PARTITIONS[split],
    'method': 'fa_ld',
    'local_steps': 10,
    'num_rounds': rounds,
    'eval_every': rounds,
    'server_parts': ('experiments.reference_posteriors.samples:Distance',),
    'Distance.number': 100,
    'Distance.samples': 4000,
  }
  path = f'digits/{split}/fa_ld_{rounds}'.lower().replace(' ', '_')
  return cells.Cell(_OF_CHAINS, path, settings)


# FA-LD has as many local steps as the other methods, and ten times as many.
_SAMPLES = {
  (method, split): cell
  for split in _PARTITIONS
  for method, cell in {
    'PVI': _GRIDS['digits']['PVI', split],
    'SWAG, product': _GRIDS['digits']['SWAG, product', split],
    'FA-LD, 300 rounds': _langevin(300, split),
    'FA-LD, 3 000 rounds': _langevin(3000, split),
  }.items()
}
_CHAINS = (
  _measure('R-hat, largest', 'r_hat', 4),
  _measure('effective size, least', 'effective_size', 0),
)
TABLES = (
  *(
    tables.Table(
      PAPER,
      data,
      f'distance from the true posterior, {weights} weights',
      _GRIDS[data],
      measures,
    )
    for data, weights, measures in (
      ('breast_cancer', 62, (*_DIAGONAL, *_WHOLE, *_PREDICTIVE)),
      ('digits', 650, (*_DIAGONAL, *_PREDICTIVE)),
    )
  ),
  tables.Table(
    PAPER,
    'samples',
    'distance of the moments of FA-LD samples, digits',
    _SAMPLES,
    (*_DIAGONAL, *_PREDICTIVE),
  ),
  tables.Table(
    PAPER,
    'chains',
    'convergence of HMC: R-hat and effective sample sizes',
    {('HMC', data): grid['HMC', 'IID'] for data, grid in _GRIDS.items()},
    _CHAINS,
  ),
)


def draw(runs):
  """Draws distances of weights and of predictions by round."""
  figure = canvas.new_figure((9.0, 8.4))
  rows = figure.subplots(2, 2, sharex=True, sharey='col')
  for (title, names), panels in zip(_PANELS.items(), rows):
    # Runs may be missing.
    shown = {name: runs[name] for name in names if name in runs}
    for axes, (column, label) in zip(panels, _BY_ROUND.items()):
      plots.learning_curve(shown, column, axes)
      axes.set(title=title, ylabel=label, yscale='log')
    panels[1].get_legend().remove()
  return figure


FIGURES = (
  figures.Figure(
    PAPER,
    'rounds',
    'distance from the true posterior, by round',
    {
      f'{data}_{split}'.lower().replace(' ', '_'): {
        row: cell
        for (row, each), cell in grid.items()
        if each == split and row in _SHOWN
      }
      for data, grid in _GRIDS.items()
      for split in _PARTITIONS
    },
    draw,
  ),
)
