"""A table of three sites, one of which has other labels, for tests."""

import pathlib

import numpy as np
import toys

from bfl_tf import runs
from bfl_tf.config.config import Config

HEADER = ['width', 'site', 'height', 'kind']
KINDS = ('left', 'right', 'up')
CENTRES = np.array([[-2, 0], [2, 0], [0, 3]])
# The bias stays on the clients, so that the global model is not usable.
LOCAL = {
  'variant': 'deterministic',
  'client_parts': ('local_layers',),
  'local_layers.layers': '0/bias',
}


def rows(per_site=60, seed=0):
  """Yields rows of three classes; at site `odd`, each has the next label."""
  rng = np.random.default_rng(seed)
  for site in ('north', 'odd', 'south'):
    for number in range(per_site):
      place = number % 3
      x, y = CENTRES[place] + rng.normal(size=2)
      kind = KINDS[(place + (site == 'odd')) % 3]
      yield [f'{x:.4f}', site, f'{y:.4f}', kind]


def write(path: pathlib.Path, lines=None, header=HEADER) -> pathlib.Path:
  toys.write_table(path, [header, *(rows() if lines is None else lines)])
  return path


def config(path, **changes) -> Config:
  """Returns the config of a small run on the table, one client per site."""
  return Config.of(
    {
      'dataset': str(path), 'label_column': 'kind', 'client_column': 'site',
      'partition': 'natural', 'num_clients': 3, 'num_workers': 1,
      'calibration_fraction': 0.5, 'model': 'logistic', 'num_rounds': 3,
      'local_epochs': 10, 'client_learning_rate': 0.05,
      'flipout.prior_scale': 1, 'flipout.temperature': 0.01,
      'num_mc_samples': 2, 'posterior_factor': 1, 'final_num_mc_samples': 4,
    }
    | changes
  )  # fmt: skip


def execute(folder: pathlib.Path, **changes) -> pathlib.Path:
  path = folder.parent / 'sites.csv'  # All runs share the table and workers.
  if not path.exists():
    write(path)
  run_dir = folder / 'run'
  settings = config(path, **changes)
  runs.Run(settings, run_dir, False, toys.BUILT, draw_plots=False).execute()
  return run_dir
