"""Which methods a config chooses, and the settings that each of them gets.

A *role* is a field of the config, or a setting, whose value names methods. A
setting has one key, `<method>.<setting>`. What is chosen for the start and
again for later rounds may differ: `start.<method>.<setting>` counts there
alone, and goes before the plain key.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from absl import logging

from bfl_tf import registry, settings
from bfl_tf.config import given as given_lib

# By role, its value (a name or several) and its table.
Roles = Mapping[str, tuple[Any, Mapping[str, Any]]]
_START = 'start.'


class Choice(NamedTuple):
  """A method in a role.

  Attributes:
    role: what chose it: a field, or `<method>.<setting>`.
    name: what its flags begin with.
    thing: the class or function.
    declared: its settings.
    values: of its settings, defaults included.
  """

  role: str
  name: str
  thing: Any
  declared: Mapping[str, settings.Declared]
  values: Mapping[str, Any]

  @property
  def prefix(self) -> str:
    """Of its own keys: `start.`, or nothing."""
    return _START if f'{self.role}.'.startswith(_START) else ''

  def key(self, setting: str) -> str:
    """Returns `<method>.<setting>`."""
    return f'{self.name}.{setting}'


class Chosen:
  """The methods of a config with their settings.

  Attributes:
    choices: each method once for every role that it has.
    settings: what differs from a default, by key.
    unused: keys that no chosen method has.
  """

  def __init__(self, roles: Roles, given: Mapping[str, Any]):
    """Finds the methods and their settings.

    Args:
      roles: of the config.
      given: values, or a flag's text, by key.
    """
    self._roles, self._given = roles, given
    self.choices: list[Choice] = []
    for role, (value, table) in roles.items():
      self._visit_role(role, role, value, table)
    used = {
      key
      for choice in self.choices
      for setting in choice.declared
      for key in (choice.key(setting), choice.prefix + choice.key(setting))
    }
    self.unused = [key for key in given if key not in used]
    self.settings = {
      key: value
      for key, declared, value in sorted(self._keyed())
      if value != declared.default or key.startswith(_START)
    }

  def using(self, name: str, thing: Any) -> Choice:
    """Returns a method that another one `uses`, in whatever role."""
    return next(
      choice
      for choice in self.choices
      if choice.name == name and choice.thing is thing
    )

  def of(self, role: str, name: str | None = None) -> Choice:
    """Returns what a role chose; by its flags' name where it has several."""
    found = [choice for choice in self.choices if choice.role == role]
    return next(choice for choice in found if name in (None, choice.name))

  def get(self, key: str) -> Any:
    """Returns the value of a key; None where no chosen method has it."""
    for found, _, value in self._keyed():
      if found == key:
        return value
    return self.get(key.removeprefix(_START)) if _START in key else None

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields every setting of every method once: its key and text."""
    for key, declared, value in self._keyed():
      yield key, declared.format(value)

  def _visit_role(self, role, flag, value, table):
    for name in value if isinstance(value, tuple) else (value,):
      thing = registry.resolve(flag, name, table)
      self._visit(role, registry.short_name(name, table), thing)

  def _visit(self, role, name, thing, set_by_its_user=()):
    declared = {
      key: declared
      for key, declared in given_lib.settings_of(role, thing).items()
      if key not in set_by_its_user
    }
    for known in self.choices:
      same_role = known.role == role
      if known.name != name or not (same_role or (known.declared and declared)):
        continue
      if known.thing is not thing:
        raise ValueError(
          f'--{known.role} and --{role} name two different things {name}: give '
          'one of them another name.'
        )
      if same_role:
        return
    values: dict[str, Any] = {}
    choice = Choice(role, name, thing, declared, values)
    values |= {key: self._value(choice, key) for key in declared}
    self.choices.append(choice)
    for key, setting in declared.items():
      if setting.table is not None:
        path = choice.prefix + choice.key(key)
        self._visit_role(path, choice.key(key), values[key], setting.table)
    for used, used_thing in getattr(thing, 'uses', {}).items():
      sets = getattr(thing, 'sets', {}).get(used, ())
      self._visit(role, used, used_thing, sets)
    # A stage of ours that a client part needs comes with it.
    _, stages = self._roles.get('server_step', ((), {}))
    needed = getattr(thing, 'needs', None)
    if needed is not None and needed in stages:
      self._visit('server_step', needed, stages[needed])

  def _value(self, choice, setting):
    key, declared = choice.key(setting), choice.declared[setting]
    for said in (choice.prefix + key, key):
      if said in self._given:
        return declared.checked(said, self._given[said])
    return declared.default

  def _keyed(self) -> Iterator[tuple[str, settings.Declared, Any]]:
    """Yields each setting's key; one of the start only where it differs."""
    found: dict[str, Any] = {}
    # What is chosen for the start alone has the plain key.
    for choice in sorted(self.choices, key=lambda each: bool(each.prefix)):
      for setting, value in choice.values.items():
        key = choice.key(setting)
        if key in found and found[key] != value:
          key = choice.prefix + key
        if key not in found:
          found[key] = value
          yield key, choice.declared[setting], value


def refuse(key: str, chosen: Chosen, known: list[Choice], typed: bool) -> None:
  """Raises for a key that no chosen method has, unless it may lie idle.

  Args:
    key: one of `chosen.unused`.
    chosen: the methods that a config chooses.
    known: every method of ours.
    typed: a person said it for this run; a preset's keys lie idle where its
      method is not chosen.
  """
  *_, name, setting = ['', *key.removeprefix(_START).split('.')]
  ours = {each.key(s): each for each in known for s in each.declared}
  if key.removeprefix(_START) in ours:
    if not typed:
      return
    roles = {each.role: None for each in known if each.name == name}
    if key.startswith(_START):
      roles = {'start': None}
    raise ValueError(
      f'--{key} is a setting of {name}, which is not chosen: leave it out, or '
      f'set {" or ".join(f"--{role}={name}" for role in roles)}.'
    )
  for choice in chosen.choices:
    if key == choice.key(setting):
      hint = registry.hint(key, map(choice.key, choice.declared), '--{}')
      listed = ', '.join(choice.declared) or 'none'
      raise ValueError(
        f'--{key} is unknown.{hint} Settings of {name}: {listed}.'
      )
  hint = registry.hint(name, [each.name for each in known])
  if typed or hint or '.' not in key:
    raise ValueError(f'--{key} is unknown: no setting goes by it.{hint}')
  # Anybody's own, which another file chose: a name cannot be told wrong.
  logging.warning('--%s is of no method that is chosen.', key)


def known_methods(roles: Roles) -> Iterator[Choice]:
  """Yields every method of ours, once for every role that it may have."""
  for role, (_, table) in roles.items():
    for key, thing in table.items():
      # Before the first round there are no updates to reduce.
      needed: Any = getattr(thing, 'statistics', None)
      if role == 'start' and needed:
        continue
      name, declared = key.partition('<')[0], given_lib.settings_of(role, thing)
      yield Choice(role, name, thing, declared, {})
      below = {
        f'{name}.{setting}': (value.default, value.table)
        for setting, value in declared.items()
        if value.table is not None
      }
      yield from known_methods(below)
