"""Signatures of the base classes, for docs/contracts.md.

`python -m experiments.signatures` writes this page.
"""

import ast
from collections.abc import Iterator
import inspect
import pathlib
import re
import textwrap

from bfl_tf import methods, parts, server, statistics, training, weights
from bfl_tf.clients import attacks
from bfl_tf.declare import component, settings
from bfl_tf.federation import engine, facts, state
from bfl_tf.metrics import score_table
from bfl_tf.server import pooling
from bfl_tf.server.pooling import rules

PAGE = pathlib.Path(__file__).parents[1] / 'docs' / 'contracts.md'
_MARK = '<!-- The rest of this page is generated. -->\n'
_CLASSES = (
  weights.Weights,
  statistics.ClientUpdate,
  component.Component,
  rules.Totals,
  rules.Gaussian,
  pooling.Rule,
  pooling.Weighting,
  parts.Local,
  parts.Server,
  parts.Pool,
  parts.Context,
  parts.Start,
  parts.Sent,
  parts.Normal,
  parts.Natural,
  parts.Keep,
  parts.ServerContext,
  parts.Outcome,
  parts.RunFacts,
  facts.Facts,
  methods.Method,
  training.Step,
  training.objectives.Objective,
  training.Likelihood,
  score_table.Score,
  state.State,
  server.Privacy,
  attacks.Attack,
  training.Optimizer,
  training.Schedule,
  engine.Engine,
  settings.Setting,
)


def page() -> str:
  """Returns the page: its introduction, then a code block per class."""
  introduction = PAGE.read_text('utf-8').partition(_MARK)[0]
  blocks = [
    f'\n## {made.__module__.removeprefix("bfl_tf.")}.{made.__name__}\n\n'
    f'```python\n{"".join(_lines(made))}```\n'
    for made in _CLASSES
  ]
  return introduction + _MARK + re.sub(r'\n{3,}', '\n\n', ''.join(blocks))


def _lines(made) -> Iterator[str]:
  """Yields the source of a class without the bodies of its functions."""
  source = textwrap.dedent(inspect.getsource(made))
  lines = source.splitlines(keepends=True)
  (parsed,) = ast.parse(source).body
  assert isinstance(parsed, ast.ClassDef)
  start = 0
  for node in parsed.body:
    if not isinstance(node, ast.FunctionDef):
      continue
    first = node.decorator_list[0] if node.decorator_list else node
    yield from lines[start : first.lineno - 1]
    start = node.end_lineno or 0
    if not node.name.startswith('_') or node.name == '__call__':
      has_doc = ast.get_docstring(node) is not None
      last = node.body[0].end_lineno if has_doc else node.body[0].lineno - 1
      yield from lines[first.lineno - 1 : last]
      yield '' if has_doc else '    ...\n'
  yield from lines[start:]


if __name__ == '__main__':
  PAGE.write_text(page(), 'utf-8')
