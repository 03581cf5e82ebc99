"""What `--help`, `--helpfull` and `--describe` print; their exit code is 0."""

from collections.abc import Iterator, Sequence
import inspect
import re
import sys
import textwrap

from absl import flags

from bfl_tf import registry, settings
from bfl_tf.federation import config as config_lib

_WIDTH = 80
_MORE = """\
--describe=NAME shows a method's settings, which are set as --NAME.setting=value
--helpfull lists every flag; a preset is a file of them: --flagfile=FILE
"""


def answer(arguments: Sequence[str]) -> None:
  """Prints what was asked for and exits; returns if nothing was.

  Raises:
    ValueError: nothing is known by the name to be described.
  """
  for word in arguments[1:]:
    asked = re.fullmatch(r'--?(helpfull|help|describe)(?:=(.*))?', word)
    if asked:
      show = {'help': _help, 'helpfull': _everything, 'describe': _method}
      print(show[asked[1]](asked[2] or ''))
      sys.exit(0)


def _help(unused):
  doc = inspect.getdoc(sys.modules['__main__']) or ''
  if 'pooling' not in flags.FLAGS:
    own = flags.FLAGS.module_help(sys.argv[0])
    return f'{doc}\n\n{own or flags.FLAGS.main_module_help()}'
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
  named = {m.name: m.thing for m in config_lib.known_methods()}
  for name, thing in sorted(named.items()):
    declared = settings.of(thing, config_lib.GIVEN)
    if declared:
      lines += ['', f'Of {name}:', *_settings(name, declared)]
  return '\n'.join([*lines, '', _MORE])


def _method(name):
  found = {
    id(thing): (role, known, thing)
    for role, known, thing, _ in config_lib.known_methods()
    if known == name
  }
  if not found and ':' in name:
    thing = registry.resolve('describe', name, {})
    found = {0: ('', registry.short_name(name, {}), thing)}
  if not found:
    known = sorted({m.name for m in config_lib.known_methods()})
    registry.check_choice('describe', name, known)
  return '\n\n'.join('\n'.join(_one(*each)) for each in found.values())


def _one(role, name, thing) -> Iterator[str]:
  yield f'{name} (--{role}={name})' if role else name
  doc = inspect.getdoc(thing) or ''
  module = inspect.getmodule(thing)
  source = re.search(r'References:\n.*', inspect.getdoc(module) or '', re.S)
  yield textwrap.indent(doc.partition('\n\n')[0], '  ')
  if source and 'References:' not in doc.partition('\n\n')[0]:
    yield textwrap.indent(source[0].partition('\n\n')[0], '  ')
  declared = settings.of(thing, config_lib.GIVEN)
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
