"""Run directories written by hand, for tests of what reads them."""

import json

from bfl_tf.runs.directory import RunDirectory
from experiments.harness import cells, claims

PAPER = cells.Paper(
  'posterior_pooling', scales={scale: {} for scale in cells.SCALES}
)
_POINTS = cells.Measure('points', cells.final('accuracy'), factor=100)


def cell(name, **overrides):
  """A cell that is never run; no other name has its config."""
  return cells.Cell(PAPER, name, {'server_split': name, **overrides})


def claim(margin=0.0, right=True):
  """Of two cells, or of one and zero; three seeds at every scale."""
  other = cell('right') if right else None
  comparison = claims.Comparison(
    'left over right', cell('left'), other, _POINTS, margin
  )
  seeds = dict.fromkeys(cells.SCALES, 3)
  return claims.Claim(PAPER, 'a_claim', 'Left is better.', (comparison,), seeds)


def finish(task, accuracy, nll=1.0, curve=(), **others):
  """Writes a finished run with these scores."""
  directory = RunDirectory(task.directory)
  with directory.locked():
    directory.start(task.config, 0)
  final = {'accuracy': accuracy, 'nll': nll, **others}
  summary = {'rounds': task.config.num_rounds, 'final': final}
  (task.directory / 'summary.json').write_text(json.dumps(summary))
  lines = [f'{r},{a}' for r, a in enumerate(curve)]
  (task.directory / 'metrics.csv').write_text(
    '\n'.join(['round,accuracy', *lines, ''])
  )
