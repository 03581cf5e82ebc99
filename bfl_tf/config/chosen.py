"""Which methods a config chooses, and the settings that each of them gets.

A *role* is a field of the config, or a setting, whose value names methods. A
setting's path is `<role>.<method>.<setting>`. Any end of it that has a method
is a key: `dirichlet.alpha` sets every chosen role that has the method,
`partition.dirichlet.alpha` one role alone, as is needed where two different
things go by one name. Of two keys that cover a setting the longer one counts,
unless the shorter one came later.
"""

from collections.abc import Collection, Iterator, Mapping
import difflib
import functools
from typing import Any, NamedTuple

from absl import logging

from bfl_tf import registry, settings
from bfl_tf.config import given as given_lib

_TEXT = (str, False)


class Settings(dict):
  """Settings by key, those that differ from their defaults: not to be changed.

  Has a hash, so that configs have one.
  """

  def __hash__(self) -> int:  # type: ignore[override]
    return hash(tuple(sorted(self.items())))


class Method(NamedTuple):
  """A thing in a role.

  Attributes:
    role: what chose it: a field, or the path of a setting that is a role.
    name: what its flags begin with.
    thing: the class or function.
    declared: its settings.
  """

  role: str
  name: str
  thing: Any
  declared: Mapping[str, settings.Declared]

  def keys(self, setting: str) -> list[str]:
    """All keys of a setting, the longest first: the path's ends."""
    parts = [*self.role.split('.'), self.name, setting]
    return ['.'.join(parts[i:]) for i in range(len(parts) - 1)]


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
  """Puts layers of settings over one another: the later one counts.

  A key takes the place of the longer keys before it that it covers.
  """
  found: dict[str, Any] = {}
  for layer in layers:
    for key, value in layer.items():
      found.pop(key, None)
      # A field covers nothing: `batch_size` is not `distil.batch_size`.
      ends = f'.{key}' if '.' in key else None
      for longer in [k for k in found if ends and k.endswith(ends)]:
        del found[longer]
      found[key] = value
  return found


class Chosen:
  """The methods of a config with their settings.

  Attributes:
    methods: each once for every role that it has.
    settings: what differs from a default, by the shortest key that says it.
  """

  def __init__(
    self,
    roles: Mapping[str, tuple[Any, Mapping[str, Any]]],
    settings_given: Mapping[str, Any],
    idle: Collection[str] = (),
    forgotten: Collection[str] = (),
  ):
    """Finds the methods and checks what they are given.

    Args:
      roles: by field, its value (a name or several) and its table.
      settings_given: values, or a flag's text, by key; of two that cover the
        same setting the later one counts.
      idle: keys that lie where their method is not chosen.
      forgotten: keys that may be of no method that is known.

    Raises:
      ValueError: one line that names the flag and what was near.
    """
    self._given = merged(settings_given)
    self._roles = roles
    self.methods: list[Method] = []
    for role, (value, table) in roles.items():
      self._visit_role(role, role, value, table)
    for key in self._given:
      if not self._matching(key) and key not in forgotten:
        self._refuse(key, key in idle)
      self._check_one_thing(key)
    self.settings = Settings(sorted(self._canonical()))

  def of(self, role: str, name: str | None = None) -> Method:
    """Returns the method of a role; by its flags' name where it has several."""
    found = [m for m in self.methods if m.role == role]
    return next(m for m in found if name in (None, m.name))

  def get(self, key: str) -> Any:
    """Returns the value of a key; None where no chosen method has it."""
    for method in self._matching(key):
      return self._value(method, method.declared[key.rpartition('.')[2]])
    return None

  def using(self, thing: Any) -> Method:
    """Returns the method that is `thing`, in whatever role.

    Raises:
      ValueError: nothing that is chosen uses it.
    """
    for method in self.methods:
      if method.thing is thing:
        return method
    raise ValueError(
      f'{thing.__name__} is asked for by a method that does not name it in its '
      '`uses`.'
    )

  def values(self, method: Method) -> dict[str, Any]:
    """Returns the settings of a method, defaults included."""
    return {d.name: self._value(method, d) for d in method.declared.values()}

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields every setting of every method once: its key and text."""
    seen = set()
    for method in self.methods:
      for declared in method.declared.values():
        key = self._shortest(method, declared)
        if key not in seen:
          seen.add(key)
          yield key, declared.format(self._value(method, declared))

  def _visit_role(self, role, flag, value, table):
    for name in value if isinstance(value, tuple) else (value,):
      thing = registry.resolve(flag, name, table)
      self._visit(role, registry.short_name(name, table), thing)

  def _visit(self, role, name, thing, set_by_its_user=()):
    for known in self.methods:
      if (known.role, known.name) == (role, name):
        if known.thing is not thing:
          raise ValueError(f'--{role} names two different things {name}.')
        return
    declared = {
      key: declared
      for key, declared in given_lib.settings_of(role, thing).items()
      if key not in set_by_its_user
    }
    method = Method(role, name, thing, declared)
    self.methods.append(method)
    for setting in declared.values():
      if setting.table is not None:
        path, value = method.keys(setting.name)[0], self._value(method, setting)
        self._visit_role(path, f'{name}.{setting.name}', value, setting.table)
    for used, used_thing in getattr(thing, 'uses', {}).items():
      sets = getattr(thing, 'sets', {}).get(used, ())
      self._visit(role, used, used_thing, sets)
    self._visit_needed(thing)

  def _visit_needed(self, part):
    """A stage of ours that a client part needs comes with it."""
    _, stages = self._roles.get('server_step', ((), {}))
    needed = getattr(part, 'needs', None)
    if needed is not None and needed in stages:
      self._visit('server_step', needed, stages[needed])

  def _value(self, method, declared):
    for key in method.keys(declared.name):
      if key in self._given:
        value = self._given[key]
        # A text is what it says where a flag's would be.
        if isinstance(value, str) and (declared.kind, declared.many) != _TEXT:
          value = declared.parse(key, value)
        return declared.checked(key, value)
    return declared.default

  def _matching(self, key):
    *_, setting = key.split('.')
    return [
      method
      for method in self.methods
      if setting in method.declared and key in method.keys(setting)
    ]

  def _check_one_thing(self, key):
    found = self._matching(key)
    if len({id(method.thing) for method in found}) > 1:
      setting = key.rpartition('.')[2]
      keys = ' or '.join(f'--{self._telling(m, setting, key)}' for m in found)
      raise ValueError(f'--{key} may mean two things: say {keys}.')

  def _telling(self, method, setting, key):
    """The shortest key of a method that is longer than `key`."""
    longer = [k for k in method.keys(setting) if len(k) > len(key)]
    return longer[-1]

  def _refuse(self, key, idle):
    """Raises for a key that no chosen method has, unless it may lie idle."""
    name, setting = ['', *key.split('.')][-2:]
    elsewhere = [
      found
      for found in _all(self._roles)
      if found.name == name
      and setting in found.declared
      and key in found.keys(setting)
    ]
    if elsewhere and idle:
      return
    for method in self.methods:
      known = next(iter(method.declared), setting)
      if key.rpartition('.')[0] in {
        k.rpartition('.')[0] for k in method.keys(known)
      }:
        near = difflib.get_close_matches(setting, method.declared, 1, 0.5)
        hint = f' Did you mean --{name}.{near[0]}?' if near else ''
        settings_known = ', '.join(method.declared) or 'none'
        raise ValueError(
          f'--{key} is unknown.{hint} Settings of {name}: {settings_known}.'
        )
    if not elsewhere:
      names = {found.name for found in _all(self._roles)}
      near = difflib.get_close_matches(name, names, 1, 0.8 if idle else 0.5)
      if idle and not near and '.' in key:
        # Anybody's own, which another file chose: a name cannot be told wrong.
        logging.warning('--%s is of no method that is chosen.', key)
        return
      hint = f' Did you mean {near[0]!r}?' if near else ''
      raise ValueError(f'--{key} is unknown: no setting goes by it.{hint}')
    roles = dict.fromkeys(found.role for found in elsewhere)
    flags = ' or '.join(f'--{role}={name}' for role in roles)
    raise ValueError(
      f'--{key} is a setting of {name}, which is not chosen: leave it out, or '
      f'set {flags}.'
    )

  def _canonical(self):
    for method in self.methods:
      for declared in method.declared.values():
        value = self._value(method, declared)
        if value != declared.default:
          yield self._shortest(method, declared), value

  def _shortest(self, method, declared):
    """The shortest key that says this and nothing else."""
    value = self._value(method, declared)
    for key in reversed(method.keys(declared.name)):
      if all(
        m.thing is method.thing
        and self._value(m, m.declared[declared.name]) == value
        for m in self._matching(key)
      ):
        return key
    return method.keys(declared.name)[0]


def known_methods(
  roles: Mapping[str, tuple[Any, Mapping[str, Any]]],
) -> list[Method]:
  """Returns every method of ours, once for every role that it may have."""
  return list(_all(roles))


def _all(roles) -> Iterator[Method]:
  for role, (_, table) in roles.items():
    yield from _found_in(role, tuple(table.items()))


@functools.cache
def _found_in(role, rows) -> tuple[Method, ...]:
  """By what a table holds: a listing makes thousands of configs."""
  return tuple(_in(role, dict(rows)))


def _in(role: str, table: Mapping[str, Any]) -> Iterator[Method]:
  for key, thing in table.items():
    # Before the first round there are no updates to reduce.
    if role != 'start' or not getattr(thing, 'statistics', ()):
      yield from _below(role, key.partition('<')[0], thing)


def _below(role: str, name: str, thing: Any) -> Iterator[Method]:
  declared = given_lib.settings_of(role, thing)
  yield Method(role, name, thing, declared)
  for setting in declared.values():
    if setting.table is not None:
      yield from _in(f'{name}.{setting.name}', setting.table)
  for used, used_thing in getattr(thing, 'uses', {}).items():
    yield from _below(role, used, used_thing)
