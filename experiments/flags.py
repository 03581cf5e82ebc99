"""Flags derived from config dataclasses; what is wrong is one line, code 2."""

from collections.abc import Callable, Sequence
import dataclasses
import os
import sys
import typing

from absl import app, flags, logging


def define(config_class: type, values: flags.FlagValues = flags.FLAGS) -> None:
  """Defines a flag for every field of a config dataclass."""
  types = typing.get_type_hints(config_class)
  for field in dataclasses.fields(config_class):
    _define(field.name, types[field.name], field, values)


def read(
  config_class: type, values: flags.FlagValues = flags.FLAGS
) -> dict[str, typing.Any]:
  """Returns the config's fields as the parsed flags say.

  Raises:
    ValueError: a list holds what is no number.
  """
  types = typing.get_type_hints(config_class)
  fields = {}
  for field in dataclasses.fields(config_class):
    value = values[field.name].value
    if isinstance(field.default, tuple):
      kind = typing.get_args(types[field.name])[0]
      value = _items(field.name, value, kind)
    fields[field.name] = value
  return fields


def read_file(
  config_class: type, path: str | os.PathLike
) -> dict[str, typing.Any]:
  """Returns those fields that a preset sets."""
  values = flags.FlagValues()
  define(config_class, values)
  flags.DEFINE_string('output_dir', None, '', flag_values=values)
  values([str(path), f'--flagfile={path}'])
  everything = read(config_class, values)
  return {name: everything[name] for name in everything if values[name].present}


def main(function: Callable[[], int | None]) -> None:
  """Runs a binary: parses flags, turns what a user got wrong into one line."""

  def body(arguments: Sequence[str]) -> int | None:
    if len(arguments) > 1:
      fail(f'unexpected argument {arguments[1]!r}; flags begin with --.')
    return function()

  app.run(body, flags_parser=_parse)


def fail(message: object, code: int = 2) -> typing.NoReturn:
  """Prints one line and exits."""
  print(f'error: {message}', file=sys.stderr)
  sys.exit(code)


def _parse(arguments):
  # TensorFlow reports every checkpoint at INFO.
  logging.set_verbosity(logging.WARNING)
  try:
    return flags.FLAGS(arguments)
  except flags.Error as error:
    fail(' '.join(str(error).split()))


def _define(name, kind, field, values):
  doc = field.metadata['help']
  if kind is bool:
    flags.DEFINE_boolean(name, field.default, doc, flag_values=values)
  elif kind is int:
    flags.DEFINE_integer(name, field.default, doc, flag_values=values)
  elif kind is float:
    flags.DEFINE_float(name, field.default, doc, flag_values=values)
  elif kind is str:
    flags.DEFINE_string(name, field.default, doc, flag_values=values)
  else:
    default = [str(item) for item in field.default]
    flags.DEFINE_list(name, default, doc, flag_values=values)


def _items(name, texts, kind):
  try:
    return tuple(kind(text) for text in texts)
  except ValueError:
    raise ValueError(
      f'--{name}={",".join(texts)} must be a comma-separated list of '
      f'{kind.__name__}.'
    ) from None
