"""Signatures of the base classes and a list of public names, for the docs.

`python -m experiments.signatures` writes docs/contracts.md and docs/api.md.
"""

import ast
from collections.abc import Iterator
import inspect
import pathlib
import pkgutil
import re
import textwrap

from bfl_tf import server, statistics, training, weights
from bfl_tf.clients import attacks
from bfl_tf.declare import component, settings
from bfl_tf.federation import engine, state
from bfl_tf.metrics import score_table
from bfl_tf.server import pooling
from bfl_tf.server.pooling import rules

PAGE = pathlib.Path(__file__).parents[1] / 'docs' / 'contracts.md'
API = PAGE.with_name('api.md')
_MARK = '<!-- The rest of this page is generated. -->\n'
_CLASSES = (
  weights.Weights,
  statistics.ClientUpdate,
  statistics.Statistic,
  statistics.Total,
  component.Component,
  rules.Totals,
  rules.Gaussian,
  pooling.Rule,
  pooling.Weighting,
  training.Part,
  training.Step,
  training.objectives.Objective,
  training.Likelihood,
  score_table.Score,
  server.Stage,
  state.State,
  server.Privacy,
  attacks.Attack,
  training.Optimizer,
  engine.Engine,
  settings.Setting,
)


def page() -> str:
  """Returns the page: its introduction, then a code block per class."""
  introduction = PAGE.read_text('utf-8').partition(_MARK)[0]
  blocks = [
    f'\n## {made.__module__.removeprefix("bfl_tf.")}.{made.__name__}\n\n'
    f'```python\n{_signatures(made)}```\n'
    for made in _CLASSES
  ]
  return introduction + _MARK + ''.join(blocks)


def api() -> str:
  """Returns the list of public names below the introduction of docs/api.md.

  The lines `::: name` of the introduction name modules, functions and classes.
  """
  introduction = API.read_text('utf-8').partition(_MARK)[0]
  names = re.findall(r'^::: (\S+)', introduction, re.MULTILINE)
  lines = dict.fromkeys(line for name in names for line in _entries(name))
  table = ['| name | description |', '|---|---|', *lines]
  return '\n'.join([introduction + _MARK, *table]) + '\n'


def _entries(name) -> Iterator[str]:
  """Yields a row of a table for each public name of a module or object."""
  thing = pkgutil.resolve_name(name)
  members = {name: thing}
  if inspect.ismodule(thing):
    members = {
      f'{name}.{member}': value
      for member, value in vars(thing).items()
      if not member.startswith('_')
      and (inspect.isfunction(value) or inspect.isclass(value))
      and value.__module__.startswith(name)
    }
  for full, value in sorted(members.items()):
    summary = (inspect.getdoc(value) or '').partition('\n\n')[0]
    text = ' '.join(summary.split()).replace('|', r'\|')
    yield f'| `{full}` | {text} |'


def _signatures(made) -> str:
  return re.sub(r'\n{3,}', '\n\n', ''.join(_lines(made)))


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
  API.write_text(api(), 'utf-8')
