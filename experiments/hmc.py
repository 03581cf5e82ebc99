"""SWAG beside HMC on the breast cancer set: how far are their draws apart?

  python -m experiments.hmc --output_dir=runs/hmc

Once in SWAG's low-rank subspace, with two plots, and once over all 21 401
weights, where R-hat and the effective sizes say how far the chains can be
trusted. One to two minutes on 2 CPU cores.
"""

import csv
import pathlib

from absl import flags
import numpy as np

from bfl_tf import plots, training
from experiments import flags as config_flags
from experiments.yardsticks import toy

_OUTPUT_DIR = flags.DEFINE_string('output_dir', None, 'Where results go.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of every draw.', lower_bound=0)
_NUM_DRAWS = flags.DEFINE_integer(
  'num_draws', 1000, 'Of each sampler in the subspace.', lower_bound=20
)
_RANK = flags.DEFINE_integer('rank', 20, "Of SWAG's factor.", lower_bound=3)
_EPOCHS = flags.DEFINE_integer('epochs', 2000, 'Of SWAG.', lower_bound=1)
_ALL_SAMPLES = flags.DEFINE_integer(
  'all_samples', 150, 'Of each chain over all weights; 0 for none.', 0
)
_CHAINS = flags.DEFINE_integer('chains', 3, 'Over all weights.', lower_bound=2)

# Of half a chain two, for their spread.
_FEWEST = 4


def main() -> None:
  """Samples, writes a table and two figures, and prints the table."""
  if not _OUTPUT_DIR.value:
    config_flags.fail('--output_dir is missing: name a directory for results.')
  if 0 < _ALL_SAMPLES.value < _FEWEST:
    config_flags.fail(
      f'--all_samples={_ALL_SAMPLES.value}: R-hat needs {_FEWEST} of each '
      'chain; 0 for none.'
    )
  training.configure(0)
  settings = toy.config(_SEED.value, _EPOCHS.value, _RANK.value)
  fitted = toy.fit(settings)
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  compared = toy.compare(fitted, _SEED.value, _NUM_DRAWS.value)
  rows = _subspace_rows(compared)
  if _ALL_SAMPLES.value:
    found = toy.over_all_weights(
      fitted, settings, _ALL_SAMPLES.value, _CHAINS.value
    )
    rows += _chain_rows('all weights', found)
  _write(folder, rows, compared)
  for name, value in rows:
    print(f'{name:52} {value}')


def _subspace_rows(compared):
  ratio = compared.deviation / compared.halves
  return [
    ('mean deviation of SWAG and HMC draws', f'{compared.deviation:.3e}'),
    ('mean deviation of two halves of HMC', f'{compared.halves:.3e}'),
    ('the first over the second', f'{ratio:.3f}'),
    ('published mean deviation, order of', '1e-03'),
    ('mean deviation of the means', f'{compared.of_means:.3e}'),
    ("SWAG's scale over HMC's, median", f'{compared.spread_ratio:.3f}'),
    ('no more than twice', 'holds' if ratio <= 2 else 'does not hold'),
    *_chain_rows('subspace', compared.chains),
  ]


def _chain_rows(name, found):
  r_hat, sizes = found.r_hat(), found.effective_size()
  num_chains, samples, dimension = found.samples.shape
  return [
    (
      f'{name}: chains x draws x dimension',
      f'{num_chains} x {samples} x {dimension}',
    ),
    (f'{name}: mean acceptance', f'{found.accepted.mean():.3f}'),
    (f'{name}: step sizes', ', '.join(f'{s:.2e}' for s in found.step_size)),
    (f'{name}: R-hat, median', f'{np.median(r_hat):.3f}'),
    (f'{name}: R-hat, largest', f'{r_hat.max():.3f}'),
    (f'{name}: R-hat below 1.1, share', f'{np.mean(r_hat < 1.1):.3f}'),
    (f'{name}: effective size, median', f'{np.median(sizes):.1f}'),
    (f'{name}: effective size, least', f'{sizes.min():.1f}'),
  ]


def _write(folder, rows, compared):
  with (folder / 'hmc.csv').open('w', newline='') as file:
    csv.writer(file).writerows([('quantity', 'value'), *rows])
  points = plots.principal({'SWAG': compared.swag, 'HMC': compared.hmc})
  for name, draw in (('plane', plots.plane), ('surface', plots.surface)):
    draw(points).savefig(folder / f'hmc_{name}.png', dpi=100)


if __name__ == '__main__':
  config_flags.main(main)
