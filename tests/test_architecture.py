"""Tests of the layers of imports, and of docs/architecture.md."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

from bfl_tf.config import config

_ROOT = pathlib.Path(__file__).parents[1]
_PACKAGE = _ROOT / 'bfl_tf'

# Layers, from the bottom. A package may import only packages of earlier rows.
# Three modules of `config` are low, because all packages declare settings.
_FLOORS = (
  ('startup',),
  ('component', 'config.user_code', 'files', 'run_files', 'seeds', 'version'),
  ('config.registry', 'trees'),
  ('config.settings',),
  ('weights',),
  ('metrics', 'data', 'models'),
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
_FLOOR = {room: i for i, floor in enumerate(_FLOORS) for room in floor}
# Plots read recorded results, so they may import only these packages.
_ONLY = {'plots': {'files', 'metrics', 'run_files'}}


def _sources() -> dict[str, list[str]]:
  """Returns the modules' texts by room; `__init__` is bfl_tf/__init__.py."""
  rooms: dict[str, list[str]] = {}
  for path in sorted(_PACKAGE.rglob('*.py')):
    name = '.'.join(path.relative_to(_PACKAGE).with_suffix('').parts)
    rooms.setdefault(_room(name), []).append(path.read_text())
  return rooms


def _room(name: str) -> str:
  """Returns the room of a module: `config.settings`, or its package."""
  first, _, rest = name.partition('.')
  module = f'{first}.{rest.partition(".")[0]}'
  return module if module in _FLOOR else first


def _imports(source: str) -> Iterator[str]:
  """Yields all imports of a module as dotted names."""
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      module = '.' * node.level + (node.module or '')
      yield from (f'{module}.{alias.name}' for alias in node.names)


def _forbidden(room: str, source: str) -> list[str]:
  """Returns the imports that a module of `room` must not have."""
  below = {other for other in _FLOOR if _FLOOR[other] < _FLOOR[room]}
  allowed = _ONLY.get(room, below) | {room}
  wrong = []
  for name in _imports(source):
    package, _, rest = name.partition('.')
    ours = package == 'bfl_tf' and _room(rest) not in allowed
    if ours or package in ('', 'experiments', 'tests'):
      wrong.append(name)
  return wrong


_SOURCES = _sources()
_ROOMS = sorted(set(_SOURCES) - {'__init__'})


def test_tfp_layers_and_samplers_are_used_in_one_place_each():
  places = {
    'tfp.layers': ('bfl_tf/models/',),
    'tfp.mcmc': ('experiments/reference_posteriors/',),
  }
  paths = [
    p for d in ('bfl_tf', 'experiments') for p in (_ROOT / d).rglob('*.py')
  ]
  for name, allowed in places.items():
    for path in paths:
      where = path.relative_to(_ROOT).as_posix()
      # The example is a user's own app.
      if not where.startswith((*allowed, 'experiments/flower_example/')):
        assert f'{name}.' not in path.read_text(), where


@pytest.mark.parametrize('room', _ROOMS)
def test_imports_go_down(room):
  assert room in _FLOOR, f'give {room} a place in _FLOORS'
  assert [
    bad for text in _SOURCES[room] for bad in _forbidden(room, text)
  ] == []


def test_no_room_above_config_names_a_setting_of_a_method():
  # `flower.messages` names this setting: its values have a colon, but no code.
  keys = config.known_settings().keys() - {'students.students'}
  for room in _ROOMS:
    if _FLOOR[room] > _FLOOR['config']:
      named = {
        node.value
        for text in _SOURCES[room]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in keys
      }
      assert not named, room
