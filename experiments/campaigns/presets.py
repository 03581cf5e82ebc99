"""The presets of all four papers, on digits and in seconds."""

from bfl_tf import config as config_lib
from experiments import flags
from experiments.harness import cells

NUM_ROUNDS = 5
_SMALL = {
  'dataset': 'digits',
  'augment': 'false',
  'partition': 'iid',
  'num_clients': '4',
  'num_rounds': str(NUM_ROUNDS),
  'local_epochs': '1',
  'num_mc_samples': '2',
  'final_num_mc_samples': '3',
  'eval_every': '1',
  'num_eval_examples': '0',
  'num_workers': '1',
}
_MLP = {'model': 'mlp', 'mlp.hidden_units': '16'}
# By paper, what makes its preset small; each carries something from round to
# round: a posterior, a student, a momentum, one of rank 3.
_CHANGES = {
  'posterior_pooling': {
    **_MLP,
    'pooling': 'lp',
    'weighting': 'max_discrepancy',
    'batch_size': '64',
  },
  'fedbe': {
    **_MLP,
    'num_server_examples': '200',
    'distil.epochs': '5',
    'distil.batch_size': '50',
    'distil.swa_start': '0.5',
    'distil.swa_cycle': '0.2',
    'ensemble.num_samples': '3',
  },
  'noniid_techniques': {
    **_MLP,
    'batch_size': '64',
    'server_step': 'momentum,sign_threshold',
    'sign_threshold.threshold': '2',
    'client_parts': 'projection,gradient_noise',
  },
  'fl_swag': {
    'local_epochs': '2',
    'swag.rank': '3',
    'ensemble.num_samples': '4',
  },
}
NAMES = tuple(_CHANGES)
# What sends a vector beside the model, and keeps a memory.
SCAFFOLD = 'scaffold'
_CHANGES[SCAFFOLD] = {
  **_MLP,
  'batch_size': '64',
  'client_parts': 'scaffold',
  'sgd.momentum': '0',
}
_PRESETS = {SCAFFOLD: 'noniid_techniques'}


def values(name: str, **more: object) -> dict[str, str]:
  """Returns what goes behind a paper's preset, by field or setting."""
  return {**_SMALL, **_CHANGES[name]} | {k: str(v) for k, v in more.items()}


def arguments(name: str, **more: object) -> list[str]:
  """Returns a small preset as flags."""
  changes = values(name, **more).items()
  return [f'--flagfile={_file(name)}', *(f'--{k}={v}' for k, v in changes)]


def config(name: str, **more: object) -> config_lib.Config:
  """Returns a small preset as a config."""
  preset = flags.read_file(_file(name))
  return config_lib.Config.of({**preset, **values(name, **more)})


def sites() -> config_lib.Config:
  """Returns a run of a table with sites, which every binary can read."""
  preset = flags.read_file(_file('wine_sites'))
  table = cells.CONFIGS / 'wine_sites' / 'wine.csv'
  small = {'dataset': str(table), 'num_rounds': 2, 'num_workers': 1}
  return config_lib.Config.of({**preset, **small, 'final_num_mc_samples': 3})


def _file(name):
  return cells.CONFIGS / f'{_PRESETS.get(name, name)}.flags'
