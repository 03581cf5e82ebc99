"""Compare all methods after equal tuning: our own experiment.

  python -m experiments.fair --step=tune --output_dir=results/fair
  python -m experiments.fair --step=score --output_dir=results/fair
  python -m experiments.fair --step=tables --output_dir=results/fair

tune runs eight trials per method on four fifths of the training examples,
with random values from the ranges below. score chooses the trial with the
lowest validation NLL (of the personal models, if the method has them). It
trains with its values on all training examples, in each setting, with five
seeds. Both append a row per run to a .csv file, and skip runs that have a row.
tables writes tables of scores, cost and chosen values, and two figures.
--methods=mine.flags runs a method file; its learning rate is tuned. Exit code
1: a run failed; 2: a flag is wrong.
"""

from collections.abc import Iterator
import csv
import itertools
import math
import pathlib
import tempfile
import time
from typing import Any

from absl import flags

from bfl_tf import files, runs, training
from bfl_tf.config import config as config_lib
from bfl_tf.config import method_file
from bfl_tf.federation import plan, run_data, stopping
from experiments import command_line
from experiments.harness import fair_scores, fair_tables, search_space

_STEP = flags.DEFINE_enum(
  'step', 'tune', ['tune', 'score', 'tables'], 'Step of the comparison.'
)
_METHODS = flags.DEFINE_list(
  'methods',
  [],
  'Methods to tune or score, names or paths of method files; empty: all.',
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', 'results/fair', 'Directory of the .csv files and the tables.'
)
_PRESET = 'configs/fair.flags'
_TRIALS, _SEEDS = 8, range(5)
_RATE = 'client_learning_rate'
# Ranges of the learning rate: SGD, and other client optimizers.
_RATE_SGD, _RATE_OTHER = 'log:0.003:0.3', 'log:0.0003:0.03'
_KL = {'flipout.temperature': 'log:0.001:1'}
# At most two more settings, by method.
RANGES: dict[str, dict[str, str]] = {
  'fedavg': {},
  'fedprox': {'proximal.weight': 'log:0.001:1'},
  'fedavgm': {'momentum.decay': 'uniform:0.3:0.95'},
  'fedadam': {'adaptive.learning_rate': 'log:0.001:0.1'},
  'fednova': {},
  'scaffold': {},
  'feddyn': {'feddyn.alpha': 'log:0.001:1'},
  'fedlap': {'fedlap.delta': 'log:1:100'},
  'fedbe': {'distil.learning_rate': 'log:0.0005:0.01'},
  'mc_dropout': {'mc_dropout.rate': 'uniform:0.05:0.5'},
  **{
    f'flipout_{rule}': _KL
    for rule in ('nwa', 'ws', 'lp', 'llp', 'wc', 'conflation')
  },
  'flipout_dwc': {},
  'swag': {},
  'ivon': {
    'ivon.temperature': 'log:0.001:1',
    'ivon.initial_scale': 'log:0.003:0.05',
  },
  'laplace': {'laplace.prior_scale': 'log:0.1:10'},
  'fola': {'laplace.prior_scale': 'log:0.1:10'},
  'pvi': {'pvi.damping': 'log:0.03:0.3'},
  'bayes_admm': {
    'ivon.temperature': 'log:0.001:1',
    'bayes_admm.damping': 'log:0.1:1',
  },
  'fedlap_cov': {'pvi.damping': 'log:0.03:0.3'},
  'fedpa': {'fedpa.shrinkage': 'log:0.001:1'},
  # The method file keeps ten samples, of more than ten rounds.
  'fa_ld': {
    'langevin.temperature': 'log:0.001:1',
    'keep_samples.number': 'uniform:2:5',
  },
  'dsgld': {'langevin.temperature': 'log:0.001:1'},
  'fedper': {},
  'ditto': {'ditto.weight': 'log:0.01:10'},
  'pfedbayes': {'flipout.temperature': 'log:0.001:1'},
  'fl_swag': {},
  'fedfisher': {'laplace.prior_scale': 'log:1:100'},
  'beta_predictive_bayes': {},
}
# A trial needs no test examples; a run requires some.
_TRIAL = {'validation_split': 0.2, 'test_split': 'test[:100]'}
SETTINGS: dict[str, dict[str, Any]] = {
  'dirichlet': {},
  'iid': {'partition': 'iid'},
  'many': {
    'train_split': 'train[:10500]',
    'partition': 'dirichlet_equal',
    'dirichlet_equal.alpha': 0.1,
    'num_clients': 100,
    'clients_per_round': 10,
    'num_rounds': 40,
  },
}
_OTHERS = {'near': 'mnist', 'far': 'cifar10'}
_FIELDS = (
  'method', 'trial', 'setting', 'seed', 'values', 'nll', 'accuracy', 'ece',
  *fair_scores.NAMES, 'cpu_seconds', 'failure',
)  # fmt: skip


def main() -> int:
  """Executes the step; returns 1 if a run failed."""
  command_line.terminable()
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  training.configure(1)
  methods = _METHODS.value or list(RANGES)
  if _STEP.value == 'tables':
    _write_tables(folder)
    return 0
  step = _trials if _STEP.value == 'tune' else _final_runs
  name, number, failed, loaded = f'{_STEP.value}.csv', 0, 0, {}
  for key, config in step(folder, methods):
    known = _rows(folder / name)
    if any(all(row[k] == v for k, v in key.items()) for row in known):
      continue
    row = {**key, **_measured(config, _STEP.value == 'score', loaded)}
    _append(folder / name, row)
    number += 1
    failed += bool(row['failure'])
    result = row['failure'] or f'nll {row["nll"]}'
    print(f'{", ".join(key.values())}: {result}', flush=True)
  print(f'{number} new rows in {folder / name}, {failed} with a failure')
  return int(bool(failed))


def _rows(path) -> list[dict[str, str]]:
  if not path.exists():
    return []
  with path.open(newline='', encoding='utf-8') as file:
    return list(csv.DictReader(file))


def _append(path, row):
  """Adds a line; several processes may run methods of their own."""
  with path.open('a', newline='', encoding='utf-8') as file:
    writer = csv.DictWriter(file, _FIELDS, restval='', lineterminator='\n')
    if not file.tell():
      writer.writeheader()
    writer.writerow(row)


def _task(method, name) -> dict[str, Any]:
  """Returns the flags of a setting, for a method."""
  needs = method_file.read(method).get('needs', ())
  task = {**config_lib.read_flagfile(_PRESET), **SETTINGS[name]}
  clients = task['num_clients']
  trained = task['num_rounds'] * (task.get('clients_per_round') or clients)
  # Clients train for as many epochs in total as with other methods.
  if 'one_round' in needs:
    epochs = task['local_epochs'] * trained // clients
    task |= {'num_rounds': 1, 'clients_per_round': 0, 'local_epochs': epochs}
  if 'one_client' in needs:
    task |= {'num_rounds': trained, 'clients_per_round': 1}
  return {**task, 'eval_every': task['num_rounds']}


def _trials(folder, methods) -> Iterator[tuple[dict[str, str], Any]]:
  """Yields the key and the config of each trial."""
  for method in methods:
    fixed = {**_task(method, 'dirichlet'), **_TRIAL}
    is_sgd = method_file.read(method).get('client_optimizer') == 'sgd'
    rate = _RATE_SGD if is_sgd else _RATE_OTHER
    ranges = {_RATE: rate, **RANGES.get(method_file.label(method), {})}
    draws = [f'{key}={span}' for key, span in ranges.items()]
    space = search_space.space(
      fixed, (), [f'method={method}'], draws, num_draws=_TRIALS
    )
    for _, reason in space.refused.values():
      raise ValueError(f'RANGES of {method}: {reason}')
    for number, config in enumerate(space.configs.values()):
      values = {key: f'{config.get(key):.4g}' for key in ranges}
      chosen = ' '.join(f'--{key}={value}' for key, value in values.items())
      key = {'method': method, 'trial': f'{number}', 'values': chosen}
      yield key, config


def _final_runs(folder, methods) -> Iterator[tuple[dict[str, str], Any]]:
  """Yields the key and the config of each run with the best trial's values."""
  chosen = _chosen(_trials_of(folder, methods))
  for name, seed, method in itertools.product(SETTINGS, _SEEDS, chosen):
    typed = _typed(chosen[method])
    values = {**_task(method, name), 'method': method, 'seed': seed, **typed}
    try:
      config = config_lib.Config.of(values, typed=typed)
      plan.Plan.of(config)
    except ValueError as error:
      if seed == _SEEDS[0]:
        print(f'{method} in {name} is left out: {error}')
      continue
    key = {'method': method, 'setting': name, 'seed': f'{seed}'}
    yield {**key, 'values': chosen[method]}, config


def _trials_of(folder, methods) -> dict[str, list[dict[str, str]]]:
  """Returns the trials of methods for which all planned trials have a row."""
  planned = [key for key, _ in _trials(folder, methods)]
  found: dict[str, list[dict[str, str]]] = {method: [] for method in methods}
  for row in _rows(folder / 'tune.csv'):
    if {name: row[name] for name in ('method', 'trial', 'values')} in planned:
      found[row['method']].append(row)
  for method, rows in found.items():
    if len(rows) < _TRIALS:
      print(f'{method}: {len(rows)} of {_TRIALS} trials; run --step=tune')
  return {name: rows for name, rows in found.items() if len(rows) == _TRIALS}


def _chosen(trials) -> dict[str, str]:
  """Returns the values of the best trial, by method."""
  return {name: min(rows, key=_loss)['values'] for name, rows in trials.items()}


def _typed(values) -> dict[str, Any]:
  """Returns the fields and settings of a command's text."""
  known = search_space.known()
  pairs = (each.removeprefix('--').split('=') for each in values.split())
  return {key: known[key].kind(value) for key, value in pairs}


def _loss(trial) -> float:
  return _number(trial['personal_nll'] or trial['nll'], math.inf)


def _number(text, default=math.nan):
  value = float(text) if text else math.nan
  return default if math.isnan(value) else value


def _measured(config, is_final, loaded) -> dict[str, Any]:
  """Runs a config and returns the columns of its row.

  `loaded` caches the data sets of all runs.
  """
  dataset = run_data.load(config, loaded)
  with tempfile.TemporaryDirectory() as folder:
    path, started = pathlib.Path(folder) / 'run', time.process_time()
    try:
      run = runs.Run(config, path, False, draw_plots=False, dataset=dataset)
      summary = run.execute()
    except (OSError, MemoryError, stopping.MachineError):
      raise  # It says nothing about the method.
    except Exception as error:
      return {'nll': '', 'failure': f'{type(error).__name__}: {error}'[:200]}
    seconds = time.process_time() - started
    prefix = '' if is_final else 'validation_'
    row = {
      name: f'{summary["final"][prefix + name]:.6g}'
      for name in ('nll', 'accuracy', 'ece', *fair_scores.PERSONAL)
      if prefix + name in summary['final']
    }
    row |= {'failure': '', 'cpu_seconds': f'{seconds:.1f}'}
    if is_final and math.isfinite(float(row['nll'])):
      if 'others' not in loaded:
        loaded['others'] = fair_scores.load_others(dataset, _OTHERS)
      row |= fair_scores.of_run(path, config, dataset, loaded['others'])
    return row


def _write_tables(folder):
  """Writes the tables and figures of the runs with the chosen values."""
  tuned = dict.fromkeys(row['method'] for row in _rows(folder / 'tune.csv'))
  trials = _trials_of(folder, [*tuned])
  chosen = _chosen(trials)
  by_setting: dict[str, list[dict[str, str]]] = {name: [] for name in SETTINGS}
  for row in _rows(folder / 'score.csv'):
    if row['values'] == chosen.get(row['method']):
      shown = {'method': method_file.label(row['method']), **_derived(row)}
      by_setting[row['setting']].append(row | shown)
  by_setting = {name: rows for name, rows in by_setting.items() if rows}
  for setting, rows in by_setting.items():
    seconds = fair_tables.numbers(rows, 'cpu_seconds')
    for row in rows:
      of_base = seconds.get(fair_tables.BASE, {}).get(row['seed'], math.nan)
      row['time'] = f'{_number(row["cpu_seconds"]) / of_base}'
    lines = [
      *fair_tables.table(rows, fair_tables.SCORES),
      '',
      *fair_tables.table(rows, fair_tables.COSTS),
    ]
    files.write_text(folder / f'{setting}.md', '\n'.join(lines) + '\n')
    print(f'{setting}:', *lines, '', sep='\n')
  lines = [*_selected(trials)]
  files.write_text(folder / 'selected.md', '\n'.join(lines) + '\n')
  every = [row for rows in by_setting.values() for row in rows]
  fair_tables.draw_ranks(every).savefig(folder / 'ranks.png')
  fair_tables.draw_bytes(by_setting).savefig(folder / 'bytes.png')


def _selected(trials) -> Iterator[str]:
  """Yields the lines of a table of the best trial of each method."""
  yield (
    '| method | values | NLL, validation images | learning rate, among those '
    'tried | trials better than a uniform prediction |'
  )
  yield '|---|---|---|---|---|'
  for method, rows in sorted(trials.items()):
    best = min(rows, key=_loss)
    rate, *rates = (_typed(row['values'])[_RATE] for row in (best, *rows))
    place = {min(rates): 'lowest', max(rates): 'highest'}.get(rate, '')
    good = sum(_loss(row) < fair_tables.UNIFORM for row in rows)
    yield (
      f'| {method_file.label(method)} | {best["values"]} | {_loss(best):.3f} | '
      f'{place} | {good} |'
    )


def _derived(row) -> dict[str, str]:
  """Returns the bytes of all rounds."""
  if not row['bytes_up']:
    return {}
  rounds = _task(row['method'], row['setting'])['num_rounds']
  a_round = float(row['bytes_up']) + float(row['bytes_down'])
  return {'bytes': f'{rounds * a_round:.6g}'}


if __name__ == '__main__':
  command_line.main(main)
