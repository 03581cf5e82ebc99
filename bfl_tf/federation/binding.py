"""From a config's fields to what is made of them: names, bound arguments."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import inspect
import types
from typing import Any

from bfl_tf import registry
from bfl_tf.federation import config as config_lib

_NONE: Mapping[str, Callable[[], Any]] = types.MappingProxyType({})


def configured(
  thing: Any,
  config: config_lib.Config,
  resources: Mapping[str, Callable[[], Any]] = _NONE,
) -> functools.partial:
  """Binds those of a thing's arguments that config or resources name.

  Args:
    thing: a class or a function.
    config: its fields are bound by their names.
    resources: functions that make what only some things need, by name.
  """
  names = inspect.signature(thing).parameters
  fields = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
  bound = {name: fields[name] for name in names if name in fields}
  made = {name: make() for name, make in resources.items() if name in names}
  return functools.partial(thing, **bound | made)


def make(flag: str, table: Mapping[str, Any], config: config_lib.Config) -> Any:
  """Makes the one thing that a flag names."""
  thing = registry.resolve(flag, getattr(config, flag), table)
  return configured(thing, config)()


def chain(
  flag: str,
  table: Mapping[str, Any],
  config: config_lib.Config,
  resources: Mapping[str, Callable[[], Any]] = _NONE,
) -> tuple:
  """Makes the members that a flag names, in order."""
  members = tuple(
    configured(registry.resolve(flag, name, table), config, resources)()
    for name in getattr(config, flag)
  )
  check_unique(f'--{flag}', members)
  return members


def check_unique(flags: str, members: tuple) -> None:
  """Raises a ValueError if a chain has two members of one name."""
  names = [member.name for member in members]
  if len(set(names)) < len(names):
    raise ValueError(f'{flags} name a member twice: {",".join(names)}.')
