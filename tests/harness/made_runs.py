"""Run directories written by hand, for tests of what reads them."""

import json

from bfl_tf.runs import directory as directory_lib
from experiments.harness import cells

PAPER = cells.Paper('posterior_pooling', scales={'smoke': {}, 'laptop': {}})


def cell(name, **overrides):
  """A cell that is never run."""
  return cells.Cell(PAPER, name, overrides)


def finish(task, accuracy, nll=1.0, curve=(), **others):
  """Writes a finished run with these scores."""
  directory = directory_lib.RunDirectory(task.directory)
  with directory.locked():
    directory.start(task.config)
  final = {'accuracy': accuracy, 'nll': nll, **others}
  (task.directory / 'summary.json').write_text(json.dumps({'final': final}))
  lines = [f'{r},{a}' for r, a in enumerate(curve)]
  (task.directory / 'metrics.csv').write_text(
    '\n'.join(['round,accuracy', *lines, ''])
  )
