"""Wine data in files of three sites and of the server, for tests."""

import grids
import numpy as np
from sklearn import datasets as sklearn_datasets
import toys

from bfl_tf.config.config import Config
from bfl_tf.flower import servers
from bfl_tf.runs import run_config

SETTINGS = {
  'num_clients': 3, 'partition': 'natural', 'num_rounds': 2,
  'num_mc_samples': 2, 'final_num_mc_samples': 2, 'mlp.hidden_units': (8,),
}  # fmt: skip
NAMES = np.array(['barolo', 'grignolino', 'barbera'])


def write(path, x, y, header='abcdefghijklm'):
  rows = [[*map(repr, map(float, row)), name] for row, name in zip(x, y)]
  return toys.write_table(path, [[*header, 'label'], *rows])


def wine(path, names=NAMES):
  """Writes three sites' files and the server's; site 0 has one class."""
  x, y = sklearn_datasets.load_wine(return_X_y=True)
  owner = np.arange(len(y)) % 4
  owner[(y != 0) & (owner == 0)] = 1
  return [write(path / f'{n}.csv', x[owner == n], names[y[owner == n]])
          for n in range(4)]  # fmt: skip


def execute(path, files, server, **changes):
  """Runs the ServerApp on nodes with these files; returns the config."""
  config = Config.of(SETTINGS | {'dataset': server} | changes)
  flags = '\n'.join(run_config.flag_lines(config))
  servers._execute(grid(files), settings(path, flags))
  return config


def grid(files):
  """Returns a grid of SuperNodes, one per file."""
  return grids.Grid(
    {10 + n: {'partition-id': n, 'data': f} for n, f in enumerate(files)}
  )


def settings(path, flags=''):
  """Returns the run config of the ServerApp."""
  return {
    'flags': flags, 'output-dir': str(path), 'window': 9,
    'node-timeout': 1.0, 'answer-timeout': 0.0, 'overwrite': False,
    'sets': 'raps', 'sets-by': '', 'event': '', 'threshold': 0.0,
    'recalibrate': '',
  }  # fmt: skip
