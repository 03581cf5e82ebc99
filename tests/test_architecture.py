"""Tests of the layers of imports, and of docs/architecture.md."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

from bfl_tf.config import catalog

_ROOT = pathlib.Path(__file__).parents[1]
_PACKAGE = _ROOT / 'bfl_tf'

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


# Texts of the modules by unit; `__init__` is bfl_tf/__init__.py.
_SOURCES: dict[str, list[str]] = {}
for _path in sorted(_PACKAGE.rglob('*.py')):
  _name = _path.relative_to(_PACKAGE).with_suffix('').parts[0]
  _SOURCES.setdefault(_name, []).append(_path.read_text('utf-8'))
_UNITS = sorted(set(_SOURCES) - {'__init__'})


def _imports(source: str) -> Iterator[str]:
  """Yields all imports of a module as dotted names."""
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      module = '.' * node.level + (node.module or '')
      yield from (f'{module}.{alias.name}' for alias in node.names)


def _forbidden(unit: str, source: str) -> list[str]:
  """Returns the imports that a module of `unit` must not have."""
  below = {other for other in _LAYER if _LAYER[other] < _LAYER[unit]}
  allowed = _ONLY.get(unit, below) | {unit}
  wrong = []
  for name in _imports(source):
    package, _, rest = name.partition('.')
    ours = package == 'bfl_tf' and rest.partition('.')[0] not in allowed
    if ours or package in ('', 'experiments', 'tests'):
      wrong.append(name)
  return wrong


@pytest.mark.parametrize('unit', _UNITS)
def test_packages_import_only_from_lower_layers(unit):
  assert unit in _LAYER, f'give {unit} a place in _LAYERS'
  assert [
    bad for text in _SOURCES[unit] for bad in _forbidden(unit, text)
  ] == []


def test_no_package_above_config_refers_to_a_method_setting():
  # `flower.messages` names this setting: its values have a colon, but no code.
  keys = catalog.known_settings().keys() - {'students.students'}
  for unit in _UNITS:
    if _LAYER[unit] > _LAYER['config']:
      named = {
        node.value
        for text in _SOURCES[unit]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in keys
      }
      assert not named, unit
