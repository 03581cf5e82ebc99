"""From a chosen method to what it makes: bound, called, and looked at once."""

import functools
import inspect
from typing import Any

from bfl_tf import own, registry
from bfl_tf.config import chosen as chosen_lib
from bfl_tf.config import config as config_lib
from bfl_tf.config import given as given_lib

_STAGE = ('name', 'statistics', '__call__')
# What a thing must have, by role; of `a|b` one is enough.
_NEEDED = {
  'client_parts': ('name', 'needs'),
  'attack': ('name', 'fraction', 'labels|send'),
  'server_step': _STAGE,
  'refine': _STAGE,
  'start': _STAGE,
  'pooling': ('accumulate', 'finalize', 'takes_weights', 'needs_prior'),
  'weighting': ('one|all',),
  'client_optimizer': ('slots', 'apply'),
  'learning_rate_schedule': ('__call__',),
  'ensemble.posterior': ('statistic', 'distribution'),
}


def bound(
  choice: chosen_lib.Choice, config: config_lib.Config, **of_run: Any
) -> functools.partial:
  """Binds a method's settings and what the run gives it.

  Args:
    choice: the method. A setting that is a role is given what it chose, made;
      a method that it `uses` is given bound, as `make_<method>`.
    config: of the run.
    **of_run: what the run gives beside fields of the config.
  """
  given = {
    name: getattr(config, name)
    for name, each in given_lib.GIVEN.items()
    if each.of_config
  }
  given |= of_run
  for used, thing in getattr(choice.thing, 'uses', {}).items():
    made = bound(config.chosen.using(used, thing), config, **of_run)
    given[f'make_{used}'] = made
  arguments = dict(choice.values)
  for name in inspect.signature(choice.thing).parameters:
    if name in given:
      arguments[name] = given[name]
    elif name in given_lib.GIVEN:
      roles = ' and '.join(f'--{to}' for to in given_lib.GIVEN[name].to)
      raise ValueError(
        f'--{choice.role}={choice.name} asks for {name}, which is given to '
        f'{roles} alone.'
      )
  for name, declared in choice.declared.items():
    if declared.table is not None:
      below = config.chosen.of(choice.prefix + choice.key(name))
      arguments[name] = _made(below, config, of_run)
  return functools.partial(choice.thing, **arguments)


def make(role: str, config: config_lib.Config, **of_run: Any) -> Any:
  """Makes the one thing in a role."""
  return _made(config.chosen.of(role), config, of_run)


def chain(role: str, config: config_lib.Config, **of_run: Any) -> tuple:
  """Makes the members of a role, in order."""
  table = config_lib.FIELDS[role].table or {}
  members = tuple(
    _made(
      config.chosen.of(role, registry.short_name(name, table)), config, of_run
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


def _made(choice, config, of_run):
  what = f'--{choice.role}={choice.name}'
  made = own.call(what, bound(choice, config, **of_run))
  missing = [
    ' or '.join(names.split('|'))
    for names in _NEEDED.get(choice.role.removeprefix('start.'), ())
    if not any(hasattr(made, name) for name in names.split('|'))
  ]
  if missing:
    raise ValueError(
      f'{what} lacks {", ".join(missing)}: see docs/your_own.md.'
    )
  return made
