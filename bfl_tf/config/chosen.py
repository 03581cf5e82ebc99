"""Which methods a config chooses, with their settings, and how they are made.

A *role* is a field of the config, or a setting, whose value names methods. A
setting has one key, `<method>.<setting>`, whatever roles its method has.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import functools
import inspect
from typing import Any

from absl import logging

from bfl_tf import component, own, registry, server, settings
from bfl_tf.config import given as given_lib

# By role, its value (a name or several) and its table.
Roles = Mapping[str, tuple[Any, Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
  """A method in a role.

  Attributes:
    role: what chose it: a field, or `<method>.<setting>`.
    said: what it was chosen by: `product`, `package.module:Rule`.
    name: what its flags begin with.
    thing: the class or function.
    declared: its settings.
    values: of its settings, defaults included.
    roles: of its settings that are roles, what they chose.
    uses: by name, methods that it makes itself.
  """

  role: str
  said: str
  name: str
  thing: Any
  declared: Mapping[str, settings.Declared]
  values: dict[str, Any] = dataclasses.field(default_factory=dict)
  roles: dict[str, 'Choice'] = dataclasses.field(default_factory=dict)
  uses: dict[str, 'Choice'] = dataclasses.field(default_factory=dict)

  def key(self, setting: str) -> str:
    """Returns `<method>.<setting>`."""
    return f'{self.name}.{setting}'

  def make(self, given: Mapping[str, Any]) -> Any:
    """Makes the method; as of `bind`."""
    return own.call(f'--{self.role}={self.said}', self.bind(given))

  def bind(self, given: Mapping[str, Any]) -> functools.partial:
    """Returns the method, bound to its `arguments`."""
    return functools.partial(self.thing, **self.arguments(given))

  def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the method's settings and what the run gives it.

    Args:
      given: by one of the names in `GIVEN`. Beside these a setting that is a
        role is what it chose, made; a method that this one `uses` comes bound,
        as `make_<method>`.
    """
    arguments = dict(self.values)
    for name in inspect.signature(self.thing).parameters:
      if name in given:
        arguments[name] = given[name]
      elif name in given_lib.GIVEN:
        roles = ' and '.join(f'--{to}' for to in given_lib.GIVEN[name])
        raise ValueError(
          f'--{self.role}={self.said} asks for {name}, which is given to '
          f'{roles} alone.'
        )
    for name, used in self.uses.items():
      arguments[f'make_{name}'] = used.bind(given)
    for name, chosen in self.roles.items():
      arguments[name] = chosen.make(given)
    return arguments


class Chosen:
  """The methods of a config with their settings.

  Attributes:
    choices: each method once for every role that it has.
    chains: by field, the methods that it names, in order.
    needed: by name, stages of ours that client parts need.
    settings: what differs from a default, by key.
    unused: keys that no chosen method has.
  """

  def __init__(self, roles: Roles, given: Mapping[str, Any]):
    """Finds the methods and their settings.

    Args:
      roles: of the config.
      given: values, or a flag's text, by key.
    """
    self._given = given
    _, self._stages = roles.get('server_step', ((), {}))
    self.choices: list[Choice] = []
    self.needed: dict[str, Choice] = {}
    self.chains = {
      role: self._chain(role, value, table)
      for role, (value, table) in roles.items()
    }
    self._keyed = {
      choice.key(setting): (choice.declared[setting], value)
      for choice in self.choices
      for setting, value in choice.values.items()
    }
    self.unused = [key for key in given if key not in self._keyed]
    self.settings = {
      key: self._keyed[key][1]
      for key in sorted(self._keyed)
      if self._keyed[key][1] != self._keyed[key][0].default
    }

  def of(self, role: str) -> Choice:
    """Returns what a field chose, of several the first."""
    return self.chains[role][0]

  def get(self, key: str) -> Any:
    """Returns the value of a key; None where no chosen method has it."""
    return self._keyed[key][1] if key in self._keyed else None

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields every setting of every method once: its key and text."""
    for key, (declared, value) in self._keyed.items():
      yield key, declared.format(value)

  def _chain(self, role, value, table) -> list[Choice]:
    return [
      self._visit(
        role,
        name,
        registry.short_name(name, table),
        registry.resolve(role, name, table),
      )
      for name in (value if isinstance(value, tuple) else (value,))
    ]

  def _visit(self, role, said, name, thing, set_by_its_user=()) -> Choice:
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
        return known
    choice = Choice(role, said, name, thing, declared)
    self.choices.append(choice)
    for setting, its in declared.items():
      key, value = choice.key(setting), its.default
      if key in self._given:
        value = its.checked(key, self._given[key])
      choice.values[setting] = value
      if its.table is not None:
        (choice.roles[setting],) = self._chain(key, value, its.table)
    declared_by = component.declared_by(thing)
    for used, used_thing in declared_by.uses.items():
      sets = declared_by.sets.get(used, ())
      choice.uses[used] = self._visit(role, used, used, used_thing, sets)
    # A stage of ours that a client part needs comes with it.
    needed = declared_by.server_stage
    if needed is not None and needed in self._stages:
      stage = self._stages[needed]
      self.needed[needed] = self._visit('server_step', needed, needed, stage)
    return choice


def check_unique(flags: str, members: tuple) -> None:
  """Raises a ValueError if a chain has two members of one name."""
  names = [member.name for member in members]
  if len(set(names)) < len(names):
    raise ValueError(f'{flags} name a member twice: {",".join(names)}.')


def refuse(key: str, chosen: Chosen, known: list[Choice], typed: bool) -> None:
  """Raises for a key that no chosen method has, unless it may lie idle.

  Args:
    key: one of `chosen.unused`.
    chosen: the methods that a config chooses.
    known: every method of ours.
    typed: a person said it for this run; a preset's keys lie idle where its
      method is not chosen.
  """
  *_, name, setting = ['', *key.split('.')]
  ours = {each.key(s): each for each in known for s in each.declared}
  if key in ours:
    if not typed:
      return
    roles = {each.role: None for each in known if each.name == name}
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
      stage = component.declared_by(thing)
      if (
        role == 'start'
        and issubclass(stage, server.Stage)
        and stage.statistics is not server.Stage.statistics
      ):
        continue
      name, declared = key.partition('<')[0], given_lib.settings_of(role, thing)
      yield Choice(role, key, name, thing, declared)
      below = {
        f'{name}.{setting}': (value.default, value.table)
        for setting, value in declared.items()
        if value.table is not None
      }
      yield from known_methods(below)
