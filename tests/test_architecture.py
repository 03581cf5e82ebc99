"""Tests of the layers of imports, and of docs/architecture.md."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

from bfl_tf.config import catalog

_PACKAGE = pathlib.Path(__file__).parents[1] / 'bfl_tf'

# Layers, from the bottom. A package may import only packages of earlier rows.
_LAYERS = (
  ('startup',),
  ('files', 'seeds', 'version'),
  ('declare', 'run_files', 'trees'),
  ('weights',),
  ('metrics', 'data', 'models', 'parts'),
  ('statistics', 'training', 'plots'),
  ('clients',),
  ('server',),
  ('methods',),
  ('config',),
  ('federation',),
  ('runs',),
  ('analysis',),
  ('flower',),
)
_LAYER = {unit: i for i, layer in enumerate(_LAYERS) for unit in layer}
# Plots read recorded results, so they may import only these packages.
_ONLY = {'plots': {'files', 'metrics', 'run_files'}}


# Syntax of the modules by unit; `__init__` is bfl_tf/__init__.py.
_NODES: dict[str, list[ast.AST]] = {}
for _path in sorted(_PACKAGE.rglob('*.py')):
  _name = _path.relative_to(_PACKAGE).with_suffix('').parts[0]
  _tree = ast.parse(_path.read_text('utf-8'))
  _NODES.setdefault(_name, []).extend(ast.walk(_tree))
_UNITS = sorted(_NODES.keys() - {'__init__'})


def _imports(unit: str) -> Iterator[str]:
  """Yields all imports of a unit as dotted names."""
  for node in _NODES[unit]:
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      module = '.' * node.level + (node.module or '')
      yield from (f'{module}.{alias.name}' for alias in node.names)


@pytest.mark.parametrize('unit', _UNITS)
def test_packages_import_only_from_lower_layers(unit):
  assert unit in _LAYER, f'give {unit} a place in _LAYERS'
  below = {other for other in _LAYER if _LAYER[other] < _LAYER[unit]}
  allowed = _ONLY.get(unit, below) | {unit}
  for name in _imports(unit):
    package, _, rest = name.partition('.')
    assert package not in ('', 'experiments', 'tests'), name
    assert package != 'bfl_tf' or rest.partition('.')[0] in allowed, name


def test_no_package_above_config_refers_to_a_method_setting():
  # `flower.messages` names this setting: its values have a colon, but no code.
  keys = catalog.known_settings().keys() - {'students.students'}
  for unit in _UNITS:
    if _LAYER[unit] > _LAYER['config']:
      nodes = [n for n in _NODES[unit] if isinstance(n, ast.Constant)]
      assert not keys & {node.value for node in nodes}, unit
