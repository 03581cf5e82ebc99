"""Which methods a config chooses, and the settings that each of them gets.

A *role* is a field of the config, or a setting, whose value names methods. A
setting's key is `<method>.<setting>`; it sets every chosen role that has the
method. `<role>.<method>.<setting>` sets one role alone, and is needed where two
different things go by one name.
"""

from collections.abc import Collection, Iterator, Mapping
import difflib
from typing import Any, NamedTuple

from bfl_tf import registry, settings

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
    role: the field or setting that chose it.
    name: what its flags begin with.
    thing: the class or function.
    declared: its settings.
  """

  role: str
  name: str
  thing: Any
  declared: Mapping[str, settings.Declared]

  def keys(self, setting: str) -> tuple[str, str]:
    """The key for this role alone, and that for all."""
    return f'{self.role}.{self.name}.{setting}', f'{self.name}.{setting}'


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
    names_given: frozenset[str],
    idle: bool,
    dropped: Collection[str] = (),
  ):
    """Finds the methods and checks what they are given.

    Args:
      roles: by field, its value (a name or several) and its table.
      settings_given: values, or a flag's text, by key.
      names_given: arguments that the run gives: no settings.
      idle: let settings of known methods that are not chosen lie.
      dropped: keys that may be of no method any more.

    Raises:
      ValueError: one line that names the flag and what was near.
    """
    self._given, self._names_given = settings_given, names_given
    self.methods: list[Method] = []
    for role, (value, table) in roles.items():
      self._visit_role(role, role, value, table)
    unknown = [key for key in settings_given if not self._matching(key)]
    for key in unknown:
      if key not in dropped:
        self._refuse(key, roles, idle)
    for key in settings_given:
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
    """Returns the method that is `thing`, in whatever role."""
    return next(m for m in self.methods if m.thing is thing)

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

  def _visit(self, role, name, thing):
    declared = settings.of(thing, self._names_given)
    method = Method(role, name, thing, declared)
    for known in self.methods:
      if (known.role, known.name) == (role, name):
        if known.thing is not thing:
          raise ValueError(f'--{role} names two different things {name}.')
        return
    self.methods.append(method)
    for setting in declared.values():
      if setting.setting.table is not None:
        flag, value = method.keys(setting.name)[1], self._value(method, setting)
        self._visit_role(setting.name, flag, value, setting.setting.table)
    for used, used_thing in getattr(thing, 'uses', {}).items():
      self._visit(role, used, used_thing)

  def _value(self, method, declared):
    for key in method.keys(declared.name):
      if key in self._given:
        value = self._given[key]
        if isinstance(value, str) and (
          declared.many or declared.kind is not str
        ):
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
      keys = ' or '.join(f'--{m.keys(setting)[0]}' for m in found)
      raise ValueError(f'--{key} may mean two things: say {keys}.')

  def _refuse(self, key, roles, idle):
    """Raises for a key that no chosen method has, unless it may lie idle."""
    *role, name, setting = ['', *key.split('.')][-3:]
    for method in self.methods:
      if method.name == name and (role in ([''], [method.role])):
        near = difflib.get_close_matches(setting, method.declared, 1, 0.5)
        hint = f' Did you mean --{name}.{near[0]}?' if near else ''
        known = ', '.join(method.declared) or 'none'
        raise ValueError(
          f'--{key} is unknown.{hint} Settings of {name}: {known}.'
        )
    elsewhere = [
      (where, thing)
      for where, known, thing in known_methods(roles)
      if known == name
      and role in ([''], [where])
      and setting in settings.of(thing, self._names_given)
    ]
    if not elsewhere:
      names = {known for _, known, _ in known_methods(roles)}
      near = difflib.get_close_matches(name, names, 1, 0.5)
      hint = f' Did you mean {near[0]!r}?' if near else ''
      raise ValueError(f'--{key} is unknown: no setting goes by it.{hint}')
    if not idle:
      flags = ' or '.join(dict.fromkeys(f'--{w}={name}' for w, _ in elsewhere))
      raise ValueError(
        f'--{key} is a setting of {name}, which is not chosen: leave it out, '
        f'or set {flags}.'
      )

  def _canonical(self):
    for method in self.methods:
      for declared in method.declared.values():
        value = self._value(method, declared)
        if value != declared.default:
          yield self._shortest(method, declared), value

  def _shortest(self, method, declared):
    """The key without its role, where that says the same."""
    whole, short = method.keys(declared.name)
    namesakes = [
      m
      for m in self.methods
      if m.name == method.name and declared.name in m.declared
    ]
    same = all(
      m.thing is method.thing
      and self._value(m, m.declared[declared.name])
      == self._value(method, declared)
      for m in namesakes
    )
    return short if same else whole


def known_methods(
  roles: Mapping[str, tuple[Any, Mapping[str, Any]]],
) -> list[tuple[str, str, Any]]:
  """Returns every method of ours as role, name and thing."""
  return [
    found for role, (_, table) in roles.items() for found in _in(role, table)
  ]


def _in(role, table):
  for key, thing in table.items():
    yield from _below(role, key.partition('<')[0], thing)


def _below(role, name, thing):
  yield role, name, thing
  for declared in settings.of(thing).values():
    if declared.setting.table is not None:
      yield from _in(declared.name, declared.setting.table)
  for used, used_thing in getattr(thing, 'uses', {}).items():
    yield from _below(role, used, used_thing)
