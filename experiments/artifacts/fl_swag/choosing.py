"""Settings that the thesis does not print, tried on validation examples.

What is chosen goes into `configs/fl_swag.flags` and the files beside it; of
features of a ResNet-18 into `deep.py`.
"""

from experiments.artifacts.fl_swag import deep, floors, grids

# The samplers' rates, of LeNet-5 on MNIST and on features.
_RATES = {
  'SGLD': (0.01, 0.05, 0.2),
  'pSGLD': (1e-4, 3e-4, 1e-3, 3e-3),
}
# There the largest of these had the least negative log likelihood.
_MORE_ON_FEATURES = {'SGLD': (0.8, 3.2), 'pSGLD': (0.01, 0.03)}


def _of_lenet5(row, rate):
  flags = grids.PAPER.flags(row.lower())
  # Fewer examples are fewer steps.
  flags |= {'thinning.every': 250, **_tried(rate)}
  return deep.cell(f'rate{rate:g}/{row.lower()}', 'mnist', flags)


def _of_features(row, rate):
  flags = {'thinning.every': 150, **_tried(rate)}
  return deep.sampled(f'rate{rate:g}/{row.lower()}', flags)


def _tried(rate):
  return {'validation_split': 0.1, 'client_learning_rate': rate}


RATES = {
  (f'{row}, rate {rate:g}', column): made(row, rate)
  for column, made, more in (
    ('mnist', _of_lenet5, {}),
    ('features cifar10', _of_features, _MORE_ON_FEATURES),
  )
  for row, rates in _RATES.items()
  for rate in (*rates, *more.get(row, ()))
}

# One run tells of all floors of a client's scale, on validation examples; the
# rate was chosen with it.
_KEPT = {
  'validation_split': 0.1,
  'swag.min_scale': 1e-6,
  'refine': ('ensemble', 'keep'),
}


def _at_all_floors(runs):
  return {
    (f'{floor:g}', column): run.reading(f'{floor:g}')
    for column, run in runs.items()
    for floor in floors.FLOORS
  }


FLOORS = _at_all_floors(
  {
    **{
      f'logistic {dataset}, rate {rate:g}': grids.cell(
        f'floors{rate:g}', dataset, {**_KEPT, 'client_learning_rate': rate}
      )
      for dataset in ('mnist', 'fashion_mnist')
      for rate in (0.003, 0.01, 0.05)
    },
    'features mnist': deep.on_features('floors', 'mnist', _KEPT),
    **{
      f'features cifar10, rate {rate:g}': deep.on_features(
        f'floors{rate:g}', 'cifar10', {**_KEPT, 'client_learning_rate': rate}
      )
      for rate in (0.01, 0.05, 0.2, 0.8)
    },
  }
)
LENET5_FLOORS = _at_all_floors(
  {
    f'rate {rate:g}': deep.cell(
      f'floors{rate:g}',
      'mnist',
      {**deep.START, **_KEPT, 'client_learning_rate': rate},
    )
    for rate in (0.002, 0.01, 0.05)
  }
)


# Of logistic regression at the preset's rate: the diagonal product, and other
# factors than ten deviations two steps apart, which span the last 20 steps of
# SGD. The least client takes 200 steps after its burn-in, ten periods of 20.
DEVIATIONS = {
  **{
    (f'{floor:g}', 'rank 10, period 2'): FLOORS[
      f'{floor:g}', 'logistic mnist, rate 0.05'
    ]
    for floor in floors.FLOORS
  },
  **_at_all_floors(
    {
      **{
        f'rank {rank}, period {period}': grids.cell(
          f'floors_rank{rank}_period{period}',
          'mnist',
          {**_KEPT, 'swag.rank': rank, 'swag.period': period},
        )
        for rank, period in ((5, 2), (20, 2), (10, 5), (10, 10), (10, 20))
      },
      'diagonal': grids.cell(
        'floors_diagonal', 'mnist', {**_KEPT, **grids.PAPER.flags('diagonal')}
      ),
    }
  ),
}
