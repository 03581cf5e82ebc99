"""Flags and flag files of fields and settings, parsed with absl."""

from collections.abc import Mapping, Sequence
import dataclasses
import os
import pathlib
import re
from typing import Any

from absl import flags

from bfl_tf.declare import registry, settings

Fields = Mapping[str, settings.SettingSpec]
_DEFINE: Mapping[type, Any] = {
  bool: flags.DEFINE_boolean,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
}
# The presets are installed next to this package.
INSTALLED = pathlib.Path(__file__).parents[2] / 'experiments'
_SETTING = re.compile(r'--?(?P<key>\w+(?:\.\w+)+)(?:=(?P<text>.*))?')


@dataclasses.dataclass
class TypedFlags:
  """Settings, and names of the flags on the command line.

  Attributes:
    texts: Values of settings as texts, by `<method>.<setting>`.
  """

  texts: dict[str, str] = dataclasses.field(default_factory=dict)
  typed: list[str] = dataclasses.field(default_factory=list)


def define(values: flags.FlagValues, known: Fields) -> None:
  """Defines a flag for every field, and `--method`."""
  flags.DEFINE_string(
    'method',
    '',
    'Method: a name, such as pvi; package.module:name, a Method in a Python '
    'module; or the path of a .flags file, which contains --method=NAME and '
    'flags that change this method. A method sets its components and their '
    'settings, in place of those in flag files. Flags on the command line are '
    'stronger. --describe=NAME shows it.',
    flag_values=values,
  )
  define_fields(values, known)


def define_fields(values: flags.FlagValues, known: Fields) -> None:
  """Defines a flag for every field."""
  for name, spec in known.items():
    doc, default = spec.help, spec.default
    if spec.many:
      items = [str(item) for item in default]
      flags.DEFINE_list(name, items, doc, flag_values=values)
    else:
      _DEFINE[spec.kind](name, default, doc, flag_values=values)


def fields(
  values: flags.FlagValues, known: Fields, present: bool = False
) -> dict[str, Any]:
  """Returns the values of fields; if `present`, of those that were set."""
  items = {}
  for name, spec in known.items():
    if name in values and (values[name].present or not present):
      value = values[name].value
      items[name] = spec.parse(name, spec.format(value)) if spec.many else value
  return items


def read(
  path: str | os.PathLike, known: Fields, known_settings: Fields
) -> dict[str, Any]:
  """Returns the fields and settings that a flag file sets."""
  values = flags.FlagValues()
  define(values, known)
  flags.DEFINE_string(
    'output_dir', None, 'Directory of the results.', flag_values=values
  )
  try:
    words = [str(path), f'--flagfile={path}']
    rest, given = split(values, words, known_settings)
    _, *others = values(rest)
  except flags.Error as error:
    raise ValueError(f'{path}: {" ".join(str(error).split())}') from error
  if others:
    raise ValueError(
      f'{path}: {others[0]!r} is not a flag: a flag begins with --.'
    )
  method = {'method': values.method} if values.method else {}
  return {**fields(values, known, present=True), **method, **given.texts}


def split(
  values: flags.FlagValues, arguments: Sequence[str], known_settings: Fields
) -> tuple[list[str], TypedFlags]:
  """Separates the flags of absl from the settings of methods.

  Typed flags follow those of files, whatever their order, so that they are
  stronger.
  """
  of_files: list[str] = []
  rest: list[str] = []
  given = TypedFlags()
  typed: dict[str, str] = {}
  words = list(arguments[1:])
  while words:
    word = words.pop(0)
    if re.fullmatch(r'--?flagfile', word) and words:
      word = f'{word}={words.pop(0)}'
    from_file = re.match(r'--?flagfile=', word)
    if from_file:
      word = f'--flagfile={_file(pathlib.Path(word[from_file.end() :]))}'
    try:
      lines = [word]
      if from_file:
        lines = values.read_flags_from_files(lines, False)
    except UnicodeDecodeError as error:
      raise ValueError(f'{word} is not UTF-8 text.') from error
    for line in lines:
      match = _SETTING.fullmatch(line)
      if not match:
        (of_files if from_file else rest).append(line)
        if not from_file:
          given.typed.append(line.lstrip('-').partition('=')[0])
        continue
      following = words if not from_file else []
      key, text = _key_and_text(
        match['key'], match['text'], following, known_settings
      )
      (given.texts if from_file else typed)[key] = text
  given.texts |= typed
  given.typed += typed
  return [*arguments[:1], *of_files, *rest], given


def _file(path: pathlib.Path) -> pathlib.Path:
  """Returns the path of a file, or of the installed preset of this name."""
  preset = INSTALLED / path
  if path.is_file():
    return path
  if path.parts[:1] == ('configs',) and preset.is_file():
    return preset
  presets = (INSTALLED / 'configs').rglob('*.flags')
  known = [*path.parent.glob('*.flags'), *presets]
  names = [str(each).removeprefix(f'{INSTALLED}/') for each in known]
  near = registry.hint(str(path), names)
  raise ValueError(f'--flagfile={path} is not a file.{near}')


def _key_and_text(key, text, words, known) -> tuple[str, str]:
  """Parses `--a.b=c`, `--a.b c`, and the booleans `--a.b` and `--noa.b`."""
  if text is not None:
    return key, text
  if key not in known and key.removeprefix('no') in known:
    return key.removeprefix('no'), 'false'
  switch = key in known and known[key].kind is bool
  if not switch and words and not words[0].startswith('-'):
    return key, words.pop(0)
  return key, 'true'
