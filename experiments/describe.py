"""What `--help`, `--helpfull` and `--describe` print; their exit code is 0."""

from collections.abc import Iterator, Sequence
import inspect
import re
import sys
import textwrap
import types
from typing import Any

from absl import flags

from bfl_tf import registry
from bfl_tf.config import config as config_lib
from bfl_tf.config import given

_WIDTH = 80
_ASKED = re.compile(r'--?(helpfull|helpshort|help|describe)(?:=(.*))?')
_MORE = """\
--describe=NAME shows a method's settings, which are set as --NAME.setting=value
--helpfull lists every flag; a preset is a file of them: --flagfile=FILE
"""


def answer(arguments: Sequence[str], module: types.ModuleType) -> None:
  """Prints what was asked for and exits; returns if nothing was.

  Args:
    arguments: of the command line.
    module: the binary.

  Raises:
    ValueError: nothing is known by the name to be described.
  """
  for word in arguments[1:]:
    asked = _ASKED.fullmatch(word)
    if asked:
      show = {'helpfull': _everything, 'describe': _method}
      what = show.get(asked[1])
      print(what(asked[2] or '') if what else _help(module))
      sys.exit(0)


def _help(module):
  doc = inspect.getdoc(module) or ''
  own = flags.FLAGS.get_key_flags_for_module(module)
  if 'pooling' not in {flag.name for flag in own}:
    return f'{doc}\n\n{flags.FLAGS.module_help(module)}'
  lines = [
    line
    for role in config_lib.ROLES
    for line in _flag(role, config_lib.FIELDS[role])
  ]
  return '\n'.join([doc, '', 'What a run is made of:', *lines, '', _MORE])


def _everything(unused):
  lines = ['Of the run:']
  for name, declared in config_lib.FIELDS.items():
    lines += _flag(name, declared)
  things = sorted(_things(), key=lambda found: found[0])
  for name, roles, thing in things:
    declared = given.settings_of(roles[0], thing)
    if declared:
      title = f'Of {name} ({", ".join(f"--{role}" for role in roles)}):'
      lines += ['', title, *_settings(name, declared)]
  return '\n'.join([*lines, '', _MORE])


def _method(name):
  found = [each for each in _things() if each[0] == name]
  if not found and ':' in name:
    thing = registry.resolve('describe', name, {})
    found = [(registry.short_name(name, {}), [], thing)]
  if not found:
    known = sorted({known for known, *_ in _things()})
    registry.check_choice('describe', name, known)
  texts = ['\n'.join(_one(*each)) for each in found]
  return '\n\n'.join(texts)


def _things() -> list[tuple[str, list[str], Any]]:
  """Returns what is ours, each thing once: its name, its roles, itself."""
  found: dict[tuple, tuple[str, list[str], Any]] = {}
  for each in config_lib.known_methods():
    key = each.name, id(each.thing)
    roles = found.setdefault(key, (each.name, [], each.thing))[1]
    if each.role not in roles:
      roles.append(each.role)
  return list(found.values())


def _one(name, roles, thing) -> Iterator[str]:
  chosen = ', '.join(f'--{role}={name}' for role in roles)
  yield f'{name} ({chosen})' if roles else name
  doc = inspect.getdoc(thing) or ''
  if doc.startswith(f'{getattr(thing, "__name__", "")}('):
    doc = ''  # A dataclass that says nothing of itself.
  module = inspect.getmodule(thing)
  source = re.search(r'References:\n.*', inspect.getdoc(module) or '', re.S)
  yield textwrap.indent(doc.partition('\n\n')[0], '  ')
  if source and 'References:' not in doc.partition('\n\n')[0]:
    yield textwrap.indent(source[0].partition('\n\n')[0], '  ')
  declared = given.settings_of(roles[0] if roles else '', thing)
  yield from (
    _settings(name, declared) if declared else ['  It has no settings.']
  )


def _settings(name, declared) -> list[str]:
  return [
    line
    for setting in declared.values()
    for line in _flag(f'{name}.{setting.name}', setting)
  ]


def _flag(flag, declared) -> Iterator[str]:
  yield f'  --{flag}={declared.format(declared.default)}'
  yield from textwrap.wrap(
    declared.help, _WIDTH, initial_indent='      ', subsequent_indent='      '
  )
