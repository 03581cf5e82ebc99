"""Handmade run directories, for tests."""

import json

from bfl_tf.runs.directory import RunDirectory
from experiments.harness import cells, claims

PAPER = cells.Paper('posterior_pooling')


def cell(name, **overrides):
  """Returns a cell whose config is unique to its name."""
  return cells.Cell(PAPER, name, {'server_split': name, **overrides})


def claim(margin=0.0, right=True):
  """Returns a claim on two cells, or on one cell and zero, with three seeds."""
  other = cell('right') if right else None
  comparison = claims.Comparison(
    'left over right', cell('left'), other, margin=margin
  )
  seeds = dict.fromkeys(cells.SCALES, range(3))
  return claims.Claim(PAPER, 'a_claim', 'Left is better.', (comparison,), seeds)


def finish_seeds(cell, root, *accuracies):
  for task, accuracy in zip(cell.tasks('smoke', range(3), root), accuracies):
    finish(task, accuracy)


def finish(task, accuracy, nll=1.0, curve=(), **others):
  """Writes a finished run with these scores."""
  directory = RunDirectory(task.directory)
  with directory.locked():
    directory.start(task.config, 0)
  final = {'accuracy': accuracy, 'nll': nll, **others}
  rounds = task.config.num_rounds
  summary = {'version': '0', 'rounds': rounds, 'final': final}
  (task.directory / 'summary.json').write_text(json.dumps(summary))
  lines = [f'{r},{a}' for r, a in enumerate(curve)]
  (task.directory / 'metrics.csv').write_text(
    '\n'.join(['round,accuracy', *lines, ''])
  )
