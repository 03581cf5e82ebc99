"""Figures 1 to 13 of Chen & Chao 2021."""

from bfl_tf import plots
from experiments.harness import cells, figures
from experiments.papers.fedbe import (
  features,
  grids,
  settings,
  simplex,
  unlabeled,
)

_STEP = 'step ConvNet'


def _figure(
  number,
  title,
  panels,
  draw=plots.learning_curve,
  seeds=settings.SEEDS,
):
  return figures.Figure(
    settings.PAPER, f'figure{number}', title, panels, draw, seeds
  )


def _sweep(number, title, panels, **xlabels):
  name = f'figure{number}'
  return figures.sweep(settings.PAPER, name, title, panels, xlabels)


def _watched(runs):
  (run,) = runs.values()
  columns = {'FedAvg': 'accuracy', 'Bayesian ensemble': 'accuracy_A+C+S'}
  return plots.learning_curve(dict.fromkeys(columns, run), columns)


def _members(runs):
  ((run,),) = runs.values()
  return plots.member_confidence(run)


_SAMPLES = {
  num: settings.cell('samples', _STEP, f'{num}', {'ensemble.num_samples': num})
  for num in (1, 5, 10, 20)
}
_LAYERS = {
  name: {
    extra: settings.cell(
      'layers', f'{extra} extra', name,
      {**flags, 'convnet.extra_layers': extra},
      laptop={'model': 'convnet', 'dataset': 'cifar10', 'augment': True},
    )
    for extra in (0, 1, 2, 3, 4)
  }
  for name, flags in {
    'FedAvg': settings.PAPER.flags('fedavg'),
    'FedBE': {},
    'FedBE, GT': settings.PAPER.flags('ground_truth'),
  }.items()
}  # fmt: skip
_ROUND_DECAY = {
  'constant in a round': grids.MAIN['FedAvg', _STEP],
  'x 0.99 a step': settings.cell(
    'round_decay', _STEP, 'fedavg',
    {**settings.PAPER.flags('fedavg'), 'steps.step_decay': 0.99},
  ),
}  # fmt: skip
_ALPHAS = {
  name: {
    alpha: settings.cell(
      'decay_over_rounds', f'alpha {alpha}', name,
      {
        **settings.PAPER.flags('fedavg', 'dirichlet'),
        'dirichlet.alpha': alpha,
        'schedule': schedule,
      },
    )
    for alpha in (0.1, 0.5, 1.0)
  }
  for name, schedule in {
    'x 0.1 at 30 and 60 %': 'steps', 'constant': 'constant',
  }.items()
}  # fmt: skip
_EPOCHS = {
  f'{method}{suffix}': {
    epochs: settings.cell(
      'epochs', f'E {epochs}', f'{method}{suffix}',
      {
        **settings.PAPER.flags(*settings.METHODS[method]), **decay,
        'local_epochs': epochs,
      },
    )
    for epochs in (1, 5, 10, 20, 30, 40)
  }
  for method in ('FedAvg', 'FedBE')
  for suffix, decay in {
    '': {}, ', no weight decay': {'client_weight_decay': 0.0},
  }.items()
}  # fmt: skip
_DISTILLATION = {
  name: {
    epochs: settings.cell(
      'distillation_epochs', f'{epochs}', name,
      settings.PAPER.flags(*settings.METHODS[name]),
      'ResNet20',
      **{
        scale: {'distil.epochs': epochs}
        for scale in ('laptop', 'overnight', 'paper')
      },
    )
    for epochs in (5, 10, 20, 30, 40)
  }
  for name in ('FedBE', 'FedBE (w/o SWA)')
}  # fmt: skip
# FedBE has few rounds, so that its accuracy is about that of FedAvg.
_FEATURES = {
  'FedAvg': grids.MAIN['FedAvg', 'step ResNet20'],
  'FedBE': settings.cell(
    'features', 'step ResNet20', 'fedbe', {'num_rounds': 15}, 'ResNet20',
    laptop={'num_rounds': 4}, overnight={'num_rounds': 8},
  ),
}  # fmt: skip

_ONE_ENSEMBLE = {
  '1-Ensemble': {
    epochs: settings.cell(
      'one_ensemble', _STEP, f'E {epochs}',
      {**settings.flags('1-Ensemble'), 'local_epochs': epochs},
    )
    for epochs in (10, 20, 50, 100, 200)
  }
}  # fmt: skip

FIGURES = (
  _figure(
    1,
    'the Swiss roll: data, simplex, confidence',
    {
      panel: {'swiss roll': grids.SWISS_ROLL}
      for panel in ('data', 'simplex', 'confidence')
    },
    {
      'data': simplex.draw_data,
      'simplex': simplex.draw_simplex,
      'confidence': _members,
    },
    cells.ONE,
  ),
  _sweep(
    2,
    'accuracy by number of sampled models',
    {'step': {'FedBE': _SAMPLES}},
    step='Sampled models M',
  ),
  _figure(
    3,
    'FedAvg and the ensemble of its clients, by round',
    {network: {'FedAvg': cell} for network, cell in grids.WATCHED.items()},
    _watched,
  ),
  _sweep(
    4,
    'accuracy by number of layers of the network',
    {'step': _LAYERS},
    step='Convolutions that ConvNet has more',
  ),
  _sweep(
    5,
    'accuracy by number of unlabeled examples',
    {
      data: {
        'FedBE': sizes,
        **{
          line: dict.fromkeys(sizes, cells[data])
          for line, cells in unlabeled.WITHOUT.items()
        },
      }
      for data, sizes in unlabeled.SIZES.items()
    },
    **{
      name: f'Unlabeled images of {name} (at {below} scale: at most a fifth)'
      for name, below in {
        'cifar10': 'laptop',
        'cifar100': 'laptop and overnight',
        'tiny_imagenet': 'laptop and overnight',
      }.items()
    },
  ),
  _figure(
    6, 'learning rate that decays within a round', {'step': _ROUND_DECAY}
  ),
  _sweep(
    7,
    'learning rate that decays over rounds, by alpha',
    {'dirichlet': _ALPHAS},
    dirichlet='Concentration of the Dirichlet split',
  ),
  _sweep(8, 'accuracy by local epochs and by weight decay', {'step': _EPOCHS},
         step='Local epochs E'),
  _figure(
    9,
    'confidence of clients and samples',
    {
      'swiss_roll': {'swiss roll': grids.SWISS_ROLL},
      'step': {'FedAvg': grids.WATCHED['ConvNet']},
    },
    _members,
    cells.ONE,
  ),
  _figure(
    10,
    'features of FedAvg and FedBE',
    {'step': _FEATURES, 'step_cifar100': _FEATURES},
    {
      'step': features.draw_test_set,
      'step_cifar100': features.draw_cifar100,
    },
    cells.ONE,
  ),
  _sweep(11, 'accuracy by epochs of distillation', {'step': _DISTILLATION},
         step='Epochs over the unlabeled data'),
  _figure(
    12,
    'accuracy of SCAFFOLD by round',
    {
      'ResNet20': {
        method: grids.SCAFFOLD[method, 'step ResNet20']
        for method in ('SCAFFOLD', 'FedBE+SCAFFOLD')
      }
    },
  ),
  _figure(
    13,
    'accuracy of all methods by round',
    {
      f'{split}_{network}': {
        method: grids.MAIN[method, f'{split} {network}']
        for method in grids.FEDBE
      }
      for split in settings.SPLITS
      for network in ('ResNet20', 'ResNet32')
    },
  ),
  figures.sweep(
    settings.PAPER,
    'appendix_b1',
    'accuracy of 1-Ensemble by local epochs',
    {'step': _ONE_ENSEMBLE},
    {'step': 'Local epochs E'},
  ),
)  # fmt: skip
