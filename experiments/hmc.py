"""Compare SWAG with HMC on the breast cancer data set.

  python -m experiments.hmc --output_dir=runs/hmc

The draws are compared in SWAG's low-rank subspace and shown in two plots. R-hat
and effective sample sizes show whether the chains converged. About a minute on
2 CPU cores.
"""

import csv
import pathlib

from absl import flags
import numpy as np

from bfl_tf import training
from experiments import command_line
from experiments.harness import planes
from experiments.reference_posteriors import toy

_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', None, 'Directory of the results.'
)
_SEED = flags.DEFINE_integer(
  'seed', 0, 'Random seed of all draws.', lower_bound=0
)
_NUM_DRAWS = flags.DEFINE_integer(
  'num_draws',
  1000,
  'Number of samples of each sampler in the subspace.',
  lower_bound=20,
)
_RANK = flags.DEFINE_integer(
  'rank', 20, 'Rank of the low-rank factor of SWAG.', lower_bound=3
)
_EPOCHS = flags.DEFINE_integer(
  'epochs', 2000, 'Number of epochs of SWAG.', lower_bound=1
)


def main() -> None:
  """Samples, writes a table and two figures, and prints the table."""
  if not _OUTPUT_DIR.value:
    command_line.fail('--output_dir is missing: name a directory for results.')
  training.configure(0)
  fitted = toy.fit(toy.config(_SEED.value, _EPOCHS.value, _RANK.value))
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  compared = toy.compare(fitted, _SEED.value, _NUM_DRAWS.value)
  rows = _rows(compared)
  with (folder / 'hmc.csv').open('w', newline='', encoding='utf-8') as file:
    csv.writer(file).writerows([('quantity', 'value'), *rows])
  points = planes.principal({'SWAG': compared.swag, 'HMC': compared.hmc})
  for name, draw in (('plane', planes.plane), ('surface', planes.surface)):
    draw(points).savefig(folder / f'hmc_{name}.png', dpi=100)
  for name, value in rows:
    print(f'{name:54} {value}')


def _rows(compared):
  ratio = compared.deviation / compared.halves
  chains = compared.chains
  r_hat, sizes = chains.r_hat(), chains.effective_size()
  shape = ' x '.join(map(str, chains.samples.shape))
  return [
    ('mean deviation of SWAG and HMC draws', f'{compared.deviation:.3e}'),
    ('mean deviation of two halves of HMC', f'{compared.halves:.3e}'),
    ('ratio of these two deviations', f'{ratio:.3f}'),
    ('published mean deviation, order of magnitude', '1e-03'),
    ('mean deviation of the means', f'{compared.of_means:.3e}'),
    (
      'median ratio of the scales of SWAG and HMC',
      f'{compared.spread_ratio:.3f}',
    ),
    (
      'deviation of SWAG is at most twice that of the halves',
      'holds' if ratio <= 2 else 'does not hold',
    ),
    ('subspace: chains x draws x dimension', shape),
    ('subspace: mean acceptance', f'{chains.accepted.mean():.3f}'),
    ('subspace: step sizes', ', '.join(f'{s:.2e}' for s in chains.step_size)),
    ('subspace: R-hat, median', f'{np.median(r_hat):.3f}'),
    ('subspace: R-hat, largest', f'{r_hat.max():.3f}'),
    ('subspace: fraction with R-hat below 1.1', f'{np.mean(r_hat < 1.1):.3f}'),
    ('subspace: effective size, median', f'{np.median(sizes):.1f}'),
    ('subspace: effective size, smallest', f'{sizes.min():.1f}'),
  ]


if __name__ == '__main__':
  command_line.main(main)
