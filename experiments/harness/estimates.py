"""Tasks to run, their status, and the time that they will take."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import math
import os
import pathlib
import re
from typing import Any

from bfl_tf import run_files
from bfl_tf.config.config import Config
from bfl_tf.runs import progress, RunSpec
from experiments.harness import cells, tables

# Training images per second and core, measured by `experiments.benchmark`. A
# forward pass costs a third of a step.
_SPEED = {
  ('resnet20', 'deterministic'): 670,
  ('resnet20', 'mc_dropout'): 600,
  ('resnet20', 'flipout'): 330,
  ('lenet5', 'deterministic'): 25000,
  ('lenet5', 'mc_dropout'): 20000,
  ('lenet5', 'flipout'): 8000,
  ('convnet', 'deterministic'): 6000,
  ('mobilenetv2', 'deterministic'): 150,
  # From 42 runs with 100 epochs of MNIST, 20 core seconds each.
  ('logistic', 'deterministic'): 300000,
}
_OTHER = 20000
# Assumed number of examples of other data sets.
_UNKNOWN = 10000
_START_SECONDS = 2.0
# Number of training examples of the data sets of artifacts.
_EXAMPLES = {
  'cifar10': 50000,
  'cifar100': 50000,
  'fashion_mnist': 60000,
  'mnist': 60000,
  'tiny_imagenet': 100000,
  'digits': 1438,
  'breast_cancer': 455,
  'experiments.papers.validation_digits:digits': 1150,
  'experiments.papers.board.data:cifar10': 50000,
  'experiments.papers.fedbe.swiss_roll:swiss_roll': 900,
  'experiments.papers.noniid_techniques.four_points:four_points': 4,
  'experiments.papers.fl_swag.shared:mnist': 50000,
  'experiments.papers.fl_swag.shared:fashion_mnist': 50000,
  'experiments.papers.fl_swag.shared:cifar10': 40000,
}


def tasks(
  wanted: Iterable[Any],
  scale: str,
  root: pathlib.Path,
  seeds: Collection[int] | None = None,
) -> list[cells.Task]:
  """Returns the tasks of artifacts and claims, each run once."""
  every = (
    cells.Task(cell, scale, seed, root)
    for artifact in wanted
    for cell in artifact.cells
    for seed in artifact.seeds[scale]
    if seeds is None or seed in seeds
  )
  # Cells that read different predictors share a directory.
  return list({task.directory: task for task in every}.values())


def core_seconds(config: Config) -> float:
  """Returns a rough estimate of the time of one run on one core."""
  a_round = config.clients_per_round or config.num_clients
  examples = _examples(config.dataset, config.train_split)
  examples *= config.local_epochs * a_round / config.num_clients
  unlabeled = config.num_unlabeled_examples or config.num_server_examples
  if config.server_dataset and not config.num_unlabeled_examples:
    unlabeled = _examples(config.server_dataset, config.server_split)
  examples += unlabeled * (config.get('distil.epochs') or 0)
  is_point = not config.make('variant', object).is_random
  samples = 1 if is_point else config.num_mc_samples
  evaluated = config.num_eval_examples or 10000
  forward = config.num_rounds / config.eval_every * samples * evaluated
  forward += 10000 * (1 if is_point else config.final_num_mc_samples)
  passes = config.num_rounds * examples + forward / 3
  # Speeds are for 32 x 32 images; Tiny-ImageNet has 64 x 64.
  area = 4 if config.dataset == 'tiny_imagenet' else 1
  resnet = re.fullmatch(r'(?:fixup_)?resnet(\d+)', config.model)
  model, depth = ('resnet20', int(resnet[1])) if resnet else (config.model, 20)
  speed = _SPEED.get((model, config.variant), _OTHER)
  return _START_SECONDS + passes * area * (depth - 2) / 18 / speed


def _examples(dataset, split):
  sliced = re.search(r':(\d+)\]', split)
  return int(sliced[1]) if sliced else _EXAMPLES.get(dataset, _UNKNOWN)


def listing(items: Mapping[str, Any], scale: str, root: pathlib.Path) -> str:
  """Returns a Markdown table with a row for each artifact or claim."""
  cores = len(os.sched_getaffinity(0))
  rows = [
    ['name', f'minutes, {cores} cores', 'status', 'data sets', 'description']
  ]
  for name, item in items.items():
    own = tasks([item], scale, root)
    left = [task for task in own if not task.is_done]
    seconds = sum(core_seconds(task.cell.config(scale, 0)) for task in left)
    missing = 'partly run' if len(left) < len(own) else 'not run'
    sets = {task.cell.config(scale, 0).dataset.split(':')[-1] for task in own}
    rows.append(
      [
        name,
        f'{seconds / 60 / cores:.1f}',
        missing if left else 'finished',
        ', '.join(sorted(sets)),
        getattr(item, 'title', '') or item.statement,
      ]
    )
  return tables.markdown(rows)


def described(runs: Sequence[RunSpec], jobs: int) -> str:
  """Returns how many runs are left, and their time if some are finished."""
  done = [run for run in runs if run.is_done]
  left = len(runs) - len(done)
  text = f'{len(runs)} runs, {len(done)} of them finished'
  # A run with a row in a table needs no directory.
  seconds = [
    run_files.read_summary(run.directory)['train_seconds']
    for run in done
    if run_files.is_finished(run.directory)
  ]
  if not (left and seconds):
    return text
  time = progress.time_left(seconds, math.ceil(left / jobs))
  return f'{text}; about {time} of training for the others'
