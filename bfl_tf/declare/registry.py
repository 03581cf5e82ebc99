"""Lookup of methods by the name in a flag.

A table maps short names to the methods of this package. User code has a name
`package.module:name`. A key `resnet<depth>` stands for a family: `resnet20` is
its function with `depth=20`.
"""

from collections.abc import Iterable, Mapping
import difflib
import functools
import re
from typing import Any

from bfl_tf.declare import user_code

# New spellings of names of earlier versions.
RENAMED = {
  'server_step': '--server_parts',
  'refine': '--server_parts',
  'dirichlet_equal': 'dirichlet with --dirichlet.sizes=equal',
  'dirichlet_sizes': 'dirichlet with --dirichlet.sizes=dirichlet',
  'min_scale': '--min_scale',
  'learning_rate_schedule': '--schedule',
  'min_local_epochs': 'a setting of the schedule, such as --steps.min_epochs',
}


def check_choice(flag: str, value: str, known: Iterable[str]) -> None:
  """Raises a ValueError naming the flag unless `value` is one of `known`."""
  known = list(known)
  if value not in known:
    raise ValueError(
      f'--{flag}={value} is unknown.{hint(value, known)} Choose one of '
      f'{", ".join(known)}.'
    )


def hint(word: str, known: Iterable[str], show: str = "'{}'") -> str:
  """Returns a sentence with the known word that is most similar, or ''."""
  if new := RENAMED.get(word) or RENAMED.get(word.rpartition('.')[2]):
    return f' It is now {new}.'
  near = difflib.get_close_matches(word, list(known), n=1)
  return f' Did you mean {show.format(near[0])}?' if near else ''


def resolve(flag: str, name: str, table: Mapping[str, Any]) -> Any:
  """Returns `table[name]`, or the object that `package.module:name` names."""
  if name in table:
    return table[name]
  for key, family in table.items():
    member = _member(key, name)
    if member:
      return _of_family(family, *member)
  if ':' in name:
    return imported(flag, name)
  raise ValueError(
    f'--{flag}={name} is unknown.{hint(name, table)} Choose one of '
    f'{", ".join(sorted(table))}, or package.module:name.'
  )


def imported(flag: str, name: str) -> Any:
  """Returns the object that `package.module:name` names."""
  module, _, attribute = name.partition(':')
  try:
    thing = getattr(user_code.import_module(module), attribute)
    # Digest of the file as it is now; it may be edited later.
    user_code.digest(name)
    return thing
  except (ImportError, AttributeError) as error:
    raise ValueError(f'--{flag}={name} cannot be imported: {error}.') from error
  # A user's module may raise any error while it is imported.
  except user_code.ERRORS as error:
    raise user_code.RaisedError(
      f'--{flag}={name} cannot be imported: {user_code.describe(error)}.'
    ) from error


def name_of(thing: Any) -> str:
  """Returns the `package.module:name` of an object."""
  module = getattr(thing, '__module__', None)
  name = getattr(thing, '__qualname__', '')
  full_name = f'{module}:{name}'
  if not name.isidentifier() or user_code.digest(full_name) is None:
    raise ValueError(
      f'{thing!r} has no importable name, so that changes of its code cannot '
      'be detected: define it in a module, and pass it or '
      "'package.module:name'."
    )
  return full_name


def short_name(name: str, table: Mapping[str, Any]) -> str:
  """Returns the first part of a method's flags.

  It is the name in the table, without the number of a family's member. For user
  code it is the part after the colon.
  """
  for key in table:
    if name not in table and _member(key, name):
      return key.partition('<')[0]
  return name.rpartition(':')[2]


def _member(key, name):
  """Splits a name of a family: `resnet20` is `resnet<depth>` with depth 20."""
  stem, _, argument = key.rstrip('>').partition('<')
  match = re.fullmatch(rf'{re.escape(stem)}(\d+)', name) if argument else None
  return (argument, int(match[1])) if match else None


@functools.cache
def _of_family(family, argument, number):
  # Other caches use the partial as their key, so each member has one partial.
  return functools.partial(family, **{argument: number})
