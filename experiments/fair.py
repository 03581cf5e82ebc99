"""Compare all methods after equal tuning: our own experiments.

  python -m experiments.fair --step=tune --output_dir=results/fair
  python -m experiments.fair --step=score --output_dir=results/fair
  python -m experiments.fair --step=tables --output_dir=results/fair

tune runs eight trials per method on a part of the training examples, with
random values from its own ranges. score chooses the trial with
the lowest validation NLL (of the personal models, if the method has them). It
trains with its values on all training examples, in each setting, with five
seeds. Both append a row per run to a .csv file, and skip runs that have a row.
tables writes tables of scores, cost and chosen values, and two figures.
--comparison=imagenet tunes in each setting, on the features of
`experiments.papers.imagenet_features` in the directory runs/features.
--methods=my_module:mine or --methods=mine.flags runs your own method; its
learning rate is tuned. Exit code 1: a run failed; 2: a flag is wrong.
"""

from collections.abc import Iterator, Mapping
import csv
import itertools
import math
import pathlib
import subprocess
import tempfile
import time
from typing import Any, NamedTuple

from absl import flags

from bfl_tf import files, runs, training
from bfl_tf.config import config as config_lib
from bfl_tf.config import named_method
from bfl_tf.federation import plan, run_data, stopping
from bfl_tf.methods import NAMED
from experiments import command_line
from experiments.harness import fair_scores, fair_tables, search_space

_STEP = flags.DEFINE_enum(
  'step', 'tune', ['tune', 'score', 'tables'], 'Step of the comparison.'
)
_METHODS = flags.DEFINE_list(
  'methods',
  [],
  'Methods to tune or score, values of --method; empty: all by name.',
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', 'results/fair', 'Directory of the .csv files and the tables.'
)
_SETTINGS = flags.DEFINE_list(
  'settings', [], 'Settings to tune or score; empty: all.'
)
_TRIALS, _SEEDS = 8, range(5)
_RATE = 'client_learning_rate'


class Comparison(NamedTuple):
  """A task whose methods are compared.

  Attributes:
    preset: Flag file of the task.
    settings: Flags of each setting.
    tuned_in: Setting whose trials choose the values for all settings; empty if
      each setting has trials.
    trial: Flags of trials.
    optimizers: Client optimizers to tune with methods that name none; each has
      an equal number of trials.
    rate_sgd: Range of the learning rate of SGD.
    rate_other: Range of the learning rate of other client optimizers.
    others: Data sets for out-of-distribution detection.
  """

  preset: str
  settings: Mapping[str, Mapping[str, Any]]
  tuned_in: str
  trial: Mapping[str, Any]
  optimizers: tuple[Mapping[str, Any], ...]
  rate_sgd: str
  rate_other: str
  others: Mapping[str, str]


_IID = {'partition': 'iid'}
_MANY = {
  'partition': 'dirichlet',
  'dirichlet.sizes': 'equal',
  'dirichlet.alpha': 0.1,
  'num_clients': 100,
  'clients_per_round': 10,
}
_ONE_ROUND = {'num_rounds': 1, 'local_epochs': 20}
_MLP = {'model': 'mlp', 'mlp.hidden_units': (128,)}
_CENTRALIZED = {**_IID, **_ONE_ROUND, 'num_clients': 1}
COMPARISONS = {
  'fair': Comparison(
    'configs/fair.flags',
    {
      'dirichlet': {},
      'iid': _IID,
      'many': {'train_split': 'train[:10500]', 'num_rounds': 40, **_MANY},
    },
    tuned_in='dirichlet',
    # A trial needs no test examples; a run requires some.
    trial={'validation_split': 0.2, 'test_split': 'test[:100]'},
    optimizers=({},),
    rate_sgd='log:0.003:0.3',
    rate_other='log:0.0003:0.03',
    others={'near': 'mnist', 'far': 'cifar10'},
  ),
  'imagenet': Comparison(
    'configs/imagenet.flags',
    {
      'one_round': _ONE_ROUND,
      'rounds': {},
      'one_round_iid': {**_ONE_ROUND, **_IID},
      'rounds_iid': _IID,
      'many': {'local_epochs': 5, **_MANY},
      'one_round_mlp': {**_ONE_ROUND, **_MLP},
      'rounds_mlp': _MLP,
      'centralized': _CENTRALIZED,
      'centralized_mlp': {**_CENTRALIZED, **_MLP},
    },
    tuned_in='',
    # Clients train on as many examples as in the final runs.
    trial={'validation_split': 0.1, 'num_server_examples': 35_000},
    optimizers=(
      {'client_optimizer': 'adam'},
      {'client_optimizer': 'sgd', 'sgd.momentum': 0.9},
    ),
    rate_sgd='log:0.001:0.1',
    rate_other='log:0.0003:0.01',
    others={
      'near': 'runs/features/cifar100.npz',
      'far': 'runs/features/mnist.npz',
    },
  ),
}
_COMPARISON = flags.DEFINE_enum(
  'comparison', 'fair', [*COMPARISONS], 'Task whose methods are compared.'
)
_FIELDS = (
  'method', 'trial', 'setting', 'seed', 'values', 'nll', 'accuracy', 'ece',
  *fair_scores.NAMES, 'cpu_seconds', 'failure',
  'commit',
)  # fmt: skip
# Columns that identify a trial.
_KEY = ('method', 'setting', 'trial', 'values')


def main() -> int:
  """Executes the step; returns 1 if a run failed."""
  command_line.terminable()
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  training.configure(1)
  methods = _METHODS.value or sorted(NAMED)
  if _STEP.value == 'tables':
    _write_tables(folder)
    return 0
  step = _trials if _STEP.value == 'tune' else _final_runs
  name, number, failed = f'{_STEP.value}.csv', 0, 0
  loaded: dict[Any, Any] = {}
  commit = _commit()
  for key, config in step(folder, methods):
    known = _rows(folder / name)
    if any(all(row[k] == v for k, v in key.items()) for row in known):
      continue
    row = {**key, **_measured(config, _STEP.value == 'score', loaded)}
    row |= {'commit': commit}
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
  known = _rows(path)
  with path.open('a', newline='', encoding='utf-8') as file:
    # An older file lacks a column.
    writer = csv.DictWriter(
      file, [*known[0]] if known else _FIELDS, '', 'ignore', lineterminator='\n'
    )
    if not known:
      writer.writeheader()
    writer.writerow(row)


def _commit() -> str:
  """Returns the commit of the code, with `-dirty` if files were changed."""
  command = ['git', 'describe', '--always', '--dirty', '--exclude=*']
  return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def _compared() -> Comparison:
  return COMPARISONS[_COMPARISON.value]


def _tuned_in(name) -> str:
  """Returns the column `setting` of the trials of a setting."""
  return '' if _compared().tuned_in else name


def _task(method, name) -> dict[str, Any]:
  """Returns the flags of a setting, for a method."""
  needs = named_method.read(method).needs
  compared = _compared()
  preset = config_lib.read_flagfile(compared.preset)
  task = {**preset, **compared.settings[name]}
  clients = task['num_clients']
  trained = task['num_rounds'] * (task.get('clients_per_round') or clients)
  # Clients train for as many epochs in total as with other methods.
  if needs.get('num_rounds') == 1:
    epochs = task['local_epochs'] * trained // clients
    task |= {'clients_per_round': 0, 'local_epochs': epochs}
  if needs.get('clients_per_round') == 1:
    task |= {'num_rounds': trained}
  task |= needs
  return {**task, 'eval_every': task['num_rounds']}


def _settings() -> list[str]:
  return _SETTINGS.value or [*_compared().settings]


def _trials(folder, methods) -> Iterator[tuple[dict[str, str], Any]]:
  """Yields the key and the config of each trial."""
  del folder
  compared = _compared()
  tuned = [compared.tuned_in] if compared.tuned_in else _settings()
  for name, method in itertools.product(tuned, methods):
    try:
      yield from _trials_of_method(name, method)
    except ValueError as error:
      print(f'{method} in {name} is left out: {error}')


def _trials_of_method(name, method) -> Iterator[tuple[dict[str, str], Any]]:
  compared = _compared()
  read = named_method.read(method)
  own = read.flags.get('client_optimizer')
  options = ({},) if own else compared.optimizers
  numbers = itertools.count()
  for option in options:
    fixed = {**_task(method, name), **compared.trial, **option}
    optimizer = own or fixed['client_optimizer']
    rate = compared.rate_sgd if optimizer == 'sgd' else compared.rate_other
    tuned = {_RATE: rate, **read.tune}
    ranges = [f'{key}={text}' for key, text in tuned.items()]
    tried = search_space.trials(
      fixed,
      (),
      {'method': method},
      search_space.axes(ranges, ()),
      _TRIALS // len(options),
    )
    for trial in tried.values():
      config = trial.config
      plan.Plan.of(config)
      values = {**option, **trial.values}
      chosen = ' '.join(f'--{key}={value}' for key, value in values.items())
      yield (
        {
          'method': method,
          'setting': _tuned_in(name),
          'trial': f'{next(numbers)}',
          'values': chosen,
        },
        config,
      )


def _final_runs(folder, methods) -> Iterator[tuple[dict[str, str], Any]]:
  """Yields the key and the config of each run with the best trial's values."""
  best = _chosen(_trials_of(folder, methods))
  for name, seed, method in itertools.product(_settings(), _SEEDS, methods):
    chosen = best.get((_tuned_in(name), method))
    if chosen is None:
      continue
    typed = _typed(chosen)
    values = {**_task(method, name), 'method': method, 'seed': seed, **typed}
    try:
      config = config_lib.Config.of(values, typed=typed)
      plan.Plan.of(config)
    except ValueError as error:
      if seed == _SEEDS[0]:
        print(f'{method} in {name} is left out: {error}')
      continue
    key = {'method': method, 'setting': name, 'seed': f'{seed}'}
    yield {**key, 'values': chosen}, config


def _trials_of(folder, methods) -> dict[tuple[str, str], list[dict[str, str]]]:
  """Returns trials by setting and method, if all planned ones have a row."""
  known = {
    tuple(row[k] for k in _KEY): row for row in _rows(folder / 'tune.csv')
  }
  found: dict[tuple[str, str], list[dict[str, str]]] = {}
  for key, _ in _trials(folder, methods):
    rows = found.setdefault((key['setting'], key['method']), [])
    rows += [known[k] for k in [tuple(key[k] for k in _KEY)] if k in known]
  for (name, method), rows in found.items():
    if len(rows) < _TRIALS:
      print(f'{method} {name}: {len(rows)} of {_TRIALS} trials; --step=tune')
  return {key: rows for key, rows in found.items() if len(rows) == _TRIALS}


def _chosen(trials) -> dict[tuple[str, str], str]:
  """Returns the values of the best trial, by setting and method."""
  return {key: min(rows, key=_loss)['values'] for key, rows in trials.items()}


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
        loaded['others'] = fair_scores.load_others(dataset, _compared().others)
      row |= fair_scores.of_run(path, config, dataset, loaded['others'])
    return row


def _write_tables(folder):
  """Writes the tables and figures of the runs with the chosen values."""
  tuned = dict.fromkeys(row['method'] for row in _rows(folder / 'tune.csv'))
  trials = _trials_of(folder, [*tuned])
  chosen = _chosen(trials)
  by_setting: dict[str, list[dict[str, str]]] = {x: [] for x in _settings()}
  for row in _rows(folder / 'score.csv'):
    place = _tuned_in(row['setting']), row['method']
    if row['setting'] in by_setting and row['values'] == chosen.get(place):
      shown = {'method': named_method.label(row['method']), **_derived(row)}
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
    '| setting | method | values | NLL, validation images | learning rate, '
    'among those tried | trials better than a uniform prediction |'
  )
  yield '|---|---|---|---|---|---|'
  for (name, method), rows in trials.items():
    best = min(rows, key=_loss)
    rate, *rates = (_typed(row['values'])[_RATE] for row in (best, *rows))
    place = {min(rates): 'lowest', max(rates): 'highest'}.get(rate, '')
    good = sum(_loss(row) < fair_tables.UNIFORM for row in rows)
    yield (
      f'| {name} | {named_method.label(method)} | {best["values"]} | '
      f'{_loss(best):.3f} | {place} | {good} |'
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
