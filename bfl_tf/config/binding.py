"""From a config to what is made of it: arguments are bound by their names."""

from collections.abc import Callable, Mapping
import functools
import inspect
import types
from typing import Any

from bfl_tf import own as own_lib
from bfl_tf import registry
from bfl_tf.config import chosen, contracts, given
from bfl_tf.config import config as config_lib

Resources = Mapping[str, Callable[[], Any]]
_NONE: Resources = types.MappingProxyType({})


def configured(
  thing: Any,
  config: config_lib.Config,
  resources: Resources = _NONE,
  own: Mapping[str, Any] = types.MappingProxyType({}),
) -> functools.partial:
  """Binds those of a thing's arguments that the run gives, and its settings.

  Args:
    thing: a class or a function.
    config: of the run.
    resources: functions that make what only some things need, by name.
    own: its settings.
  """
  names = inspect.signature(thing).parameters
  offered = {
    name: getattr(config, name)
    for name in given.GIVEN.keys() & set(config_lib.FIELDS)
    # How many classes there are the data say: the field may be 0.
    if name != 'num_classes'
  }
  bound = {name: offered[name] for name in names if name in offered}
  made = {name: make() for name, make in resources.items() if name in names}
  return functools.partial(thing, **{**bound, **made, **own})


def bound(
  method: chosen.Method, config: config_lib.Config, resources: Resources = _NONE
) -> functools.partial:
  """Binds a chosen method's settings, and what else it names.

  Of a setting that is a role it is given what was chosen, made.
  """
  own = config.chosen.values(method)
  for name, declared in method.declared.items():
    if declared.table is not None:
      below = config.chosen.of(method.keys(name)[0])
      flag = f'--{method.name}.{name}={below.name}'
      own[name] = _made(flag, below, config, resources)
  return configured(method.thing, config, resources, own)


def make(
  role: str, config: config_lib.Config, resources: Resources = _NONE
) -> Any:
  """Makes the one thing in a role."""
  what = f'--{role}={getattr(config, role)}'
  return _made(what, config.chosen.of(role), config, resources)


def chain(
  role: str, config: config_lib.Config, resources: Resources = _NONE
) -> tuple:
  """Makes the members of a role, in order."""
  table = config_lib.FIELDS[role].table or {}
  members = tuple(
    _made(
      f'--{role}={name}',
      config.chosen.of(role, registry.short_name(name, table)),
      config,
      resources,
    )
    for name in getattr(config, role)
  )
  check_unique(f'--{role}', members)
  return members


def check_unique(flags: str, members: tuple) -> None:
  """Raises a ValueError if a chain has two members of one name."""
  names = [member.name for member in members]
  if len(set(names)) < len(names):
    raise ValueError(f'{flags} name a member twice: {",".join(names)}.')


def _made(what, method, config, resources):
  made = own_lib.call(what, bound(method, config, resources))
  contracts.check(what, method.role.rpartition('.')[2], made)
  return made
