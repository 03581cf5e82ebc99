"""Output of `--help`, `--helpfull` and `--describe`, with exit code 0."""

from collections.abc import Iterator, Sequence
import inspect
import re
import sys
import textwrap
import types
from typing import Any

from absl import flags

from bfl_tf.config import catalog, fields, named_method, selection
from bfl_tf.declare import registry, settings
from bfl_tf.methods import Method, NAMED

_WIDTH, _COLUMN = 100, 34
_SIGNS = {'ge': '≥', 'gt': '>', 'le': '≤', 'lt': '<'}
_REQUEST = re.compile(r'--?(helpfull|helpshort|help|describe)(?:=(.*))?')
_MORE = """\
--describe=NAME shows the settings of a component, --NAME.setting=value, or the
flags of a method, --method=NAME
--helpfull also lists the settings of all methods
--flagfile=FILE reads flags from a file, such as a preset in configs/
"""


def answer(arguments: Sequence[str], module: types.ModuleType) -> None:
  """Prints the requested help and exits; returns if none is requested."""
  for word in arguments[1:]:
    match = _REQUEST.fullmatch(word)
    if match:
      show = {'helpfull': _everything, 'describe': _method}
      what = show.get(match[1])
      print(what(match[2] or '') if what else _help(module))
      sys.exit(0)


def _help(module):
  doc = inspect.getdoc(module) or ''
  own = flags.FLAGS.get_key_flags_for_module(module)
  lines = [doc, '', 'Flags of this command:']
  trains = 'pooling' in {flag.name for flag in own}
  for flag in own:
    if not (trains and flag.name in fields.FIELDS):
      value = '' if flag.default is None else flag.default
      value = ','.join(value) if isinstance(value, list) else value
      # absl adds a sentence to flags that may be repeated.
      text = flag.help.partition(';\n')[0]
      lines += _described(f'{flag.name}={value}', text)
  if trains:
    lines += [*_fields(), '', _MORE]
  return '\n'.join(lines)


def _fields():
  lines = []
  for group in fields.GROUPS:
    heading = (inspect.getdoc(group) or '').partition('.')[0]
    lines += ['', f'{heading}:']
    for name, spec in settings.of(group).items():
      lines += _flag(name, spec)
  return lines


def _everything(unused):
  lines = _fields()
  methods = sorted(_methods(), key=lambda found: found[0])
  for name, roles, factory in methods:
    specs = selection.settings_of(roles[0], factory)
    if specs:
      flags_of = ', '.join(f'--{role}={name}' for role in roles)
      lines += ['', f'{name} ({flags_of}):', *_settings(name, specs)]
  return '\n'.join([*lines, '', _MORE])


def _method(name):
  found, texts = [each for each in _methods() if each[0] == name], []
  is_method = name in NAMED or named_method.is_file(name)
  if ':' in name and not is_method:
    is_method = isinstance(registry.imported('describe', name), Method)
    if not is_method:
      found = [(name, [], registry.resolve('describe', name, {}))]
  if is_method:
    method = named_method.read(name)
    text = '\n'.join(_flags_of(method))
    texts = [f'--method={name}\n\n{text}\n\nIts components:']
    chosen = [key for key in method.flags if key in fields.ROLES]
    roles = fields.roles_of(method.flags, chosen)
    found = [
      (each.requested_name, [each.role], each.factory)
      for each in selection.Selection(roles, {}).methods
    ]
  if not (texts or found):
    known = {known for known, *_ in _methods()} | {*NAMED}
    registry.check_choice('describe', name, sorted(known))
  return '\n\n'.join([*texts, *('\n'.join(_one(*each)) for each in found)])


def _flags_of(method) -> Iterator[str]:
  """Yields the flags of a method, with its help, needs and ranges."""
  for line in inspect.cleandoc(method.help).splitlines():
    yield f'# {line}'.rstrip()
  for key, value in method.flags.items():
    many = isinstance(value, tuple | list)
    yield f'--{key}={",".join(value) if many else value}'
  for key, value in method.needs.items():
    yield f'# It needs --{key}={value}.'
  for key, text in method.tune.items():
    yield f'# Range of --tune=default: {key}={text}.'


def _methods() -> list[tuple[str, list[str], Any]]:
  """Returns the name, the roles and the factory of each method, once."""
  found: dict[tuple, tuple[str, list[str], Any]] = {}
  for each in catalog.known_methods():
    key = each.name, id(each.factory)
    roles = found.setdefault(key, (each.name, [], each.factory))[1]
    if each.role not in roles:
      roles.append(each.role)
  return list(found.values())


def _one(name, roles, factory) -> Iterator[str]:
  chosen = ', '.join(f'--{role}={name}' for role in roles)
  name = registry.short_name(name, {})
  yield f'{name} ({chosen})' if roles else name
  doc = inspect.getdoc(factory) or ''
  # The default docstring of a dataclass is its signature.
  if re.match(r'\w+\(', doc):
    doc = ''
  module = inspect.getmodule(factory)
  source = re.search(r'References:\n.*', inspect.getdoc(module) or '', re.S)
  yield textwrap.indent(doc.partition('\n\n')[0], '  ')
  if source and 'References:' not in doc.partition('\n\n')[0]:
    yield textwrap.indent(source[0].partition('\n\n')[0], '  ')
  specs = selection.settings_of(roles[0] if roles else '', factory)
  yield from _settings(name, specs) if specs else ['  It has no settings.']


def _settings(name, specs) -> list[str]:
  return [
    line
    for spec in specs.values()
    for line in _flag(f'{name}.{spec.name}', spec)
  ]


def _flag(flag, spec) -> Iterator[str]:
  return _described(f'{flag}={spec.format(spec.default)}', spec.help)


def _described(flag, description) -> Iterator[str]:
  first, indent = f'  --{flag}', ' ' * _COLUMN
  text = textwrap.wrap(
    description, _WIDTH, initial_indent=indent, subsequent_indent=indent
  )
  if len(first) + 2 <= _COLUMN and text:
    yield first + text.pop(0)[len(first) :]
  else:
    yield first
  yield from text


def reference() -> str:
  """Returns the page of all flags and settings of the site, as Markdown."""
  lines = [
    '# Flags and settings',
    '',
    'Every flag is also a field of `bfl_tf.Config`. Every setting is a key',
    "of its argument `settings`, such as `settings={'dirichlet.alpha': 0.5}`.",
  ]
  for group in fields.GROUPS:
    heading = (inspect.getdoc(group) or '').partition('.')[0]
    lines += ['', f'## {heading}', '', *_rows('', settings.of(group))]
  lines += ['', '## Settings of methods']
  for name, roles, factory in sorted(_methods(), key=lambda found: found[0]):
    specs = selection.settings_of(roles[0], factory)
    if specs:
      flags_of = ', '.join(f'`--{role}={name}`' for role in roles)
      rows = _rows(f'{name}.', specs)
      lines += ['', f'### {name}', '', f'Selected by {flags_of}.', '', *rows]
  return '\n'.join(lines)


def _rows(prefix, specs) -> Iterator[str]:
  yield '| flag | default | range | description |'
  yield '|---|---|---|---|'
  for name, spec in specs.items():
    default = spec.format(spec.default)
    shown = f'`{default}`' if default else ''
    text = re.sub(r'<(\w+)>', r'`<\1>`', spec.help.replace('|', '\\|'))
    bounds = ', '.join(
      f'{sign} {getattr(spec.setting, bound):g}'
      for bound, sign in _SIGNS.items()
      if getattr(spec.setting, bound) is not None
    )
    yield f'| `--{prefix}{name}` | {shown} | {bounds} | {text} |'
