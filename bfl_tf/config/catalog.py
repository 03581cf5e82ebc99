"""The methods of this package and their settings."""

import dataclasses
import functools

from bfl_tf.config import selection
from bfl_tf.config.fields import FIELDS, roles_of
from bfl_tf.data import dataset_config
from bfl_tf.declare import registry, settings


@functools.cache
def known_methods() -> list[selection.MethodConfig]:
  """Returns every method of this package, once for each of its roles."""
  return list(selection.known_methods(roles_of({})))


@functools.cache
def known_settings() -> dict[str, settings.SettingSpec]:
  """Returns the settings of every method of this package, by key."""
  return selection.keys_of(known_methods())


@functools.cache
def settings_of_roles(
  names: tuple[str, ...],
) -> dict[str, settings.SettingSpec]:
  """Returns the settings of every method of these roles, by key."""
  return selection.keys_of([*selection.known_methods(roles_of({}, names))])


@functools.cache
def of_task() -> frozenset[str]:
  """Returns the flags of data, partition, network, privacy and attack.

  A study may compare flag files, which are values of `task`.
  """
  data = dataclasses.fields(dataset_config.DatasetConfig)
  roles = ('task', 'partition', 'model', 'likelihood', 'privacy', 'attack')
  settings_of_task = settings_of_roles(('partition', 'privacy', 'attack'))
  return frozenset(
    {*(field.name for field in data), *roles, 'num_clients', *settings_of_task}
  )


def near(name: str) -> str:
  """Returns a hint for an unknown flag: a setting or field of similar name."""
  keys = known_settings()
  same = [f'--{field}' for field in FIELDS if field.endswith(f'_{name}')]
  same += [f'--{key}' for key in keys if key.endswith(f'.{name}')]
  if same:
    return f' Did you mean {" or ".join(same)}?'
  return registry.hint(name, [*FIELDS, 'method', *keys], '--{}')
