"""The methods that a config selects, with their settings.

A *role* is a field of the config, or a setting, whose value names methods. A
setting has the same key, `<method>.<setting>`, in all roles of its method.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import functools
import inspect
from typing import Any, NoReturn

import numpy as np

from bfl_tf import methods, models, parts
from bfl_tf.declare import component, registry, settings, user_code

# The value and the table by role; a value is one name or several names.
Roles = Mapping[str, tuple[Any, Mapping[str, Any]]]

OF_VARIANTS = frozenset(
  name for kind in models.VARIANTS.values() for name in settings.of(kind)
)


@dataclasses.dataclass(frozen=True)
class RunContext:
  """Values of a run, passed to the methods whose constructor names them.

  A constructor argument with the name of an attribute is therefore not a
  setting. An attribute is None where the run cannot provide it yet.

  Attributes:
    num_classes: Number of classes, for partitions and networks; for a network,
      the number of its outputs.
    label_moments: Mean and standard deviation of numeric labels, for
      likelihoods.
    rows: Place of each example in the data set, for partitions.
  """

  seed: int
  num_clients: int
  clients_per_round: int
  num_rounds: int
  num_classes: int | None = None
  label_moments: tuple[float, float] | None = None
  rows: np.ndarray | None = None
  client_ids: np.ndarray | None = None
  input_shape: tuple[int, ...] | None = None
  variant: str | None = None
  kernel_initializer: str | None = None


_OF_RUN = frozenset(field.name for field in dataclasses.fields(RunContext))


def settings_of(role: str, factory: Any) -> dict[str, settings.SettingSpec]:
  """Returns the settings of a method in a role, by name.

  A network receives the settings of the variant, which are not its own.
  """
  passed = _OF_RUN
  if role == 'model':
    passed |= OF_VARIANTS
  return {
    name: spec
    for name, spec in settings.of(factory).items()
    if name not in passed
  }


@dataclasses.dataclass(frozen=True, eq=False)
class MethodConfig:
  """A method in a role, with its settings.

  Attributes:
    requested_name: Name in the config: `product`, `package.module:Rule`.
    uses: Components in the fields of this one, by name of the field.
  """

  role: str
  requested_name: str
  name: str
  factory: Any
  specs: Mapping[str, settings.SettingSpec]
  values: dict[str, Any] = dataclasses.field(default_factory=dict)
  roles: dict[str, 'MethodConfig'] = dataclasses.field(default_factory=dict)
  uses: dict[str, 'MethodConfig'] = dataclasses.field(default_factory=dict)

  def key(self, setting: str) -> str:
    """Returns `<method>.<setting>`."""
    return f'{self.name}.{setting}'

  def make(self, context: RunContext) -> Any:
    """Builds the method with its settings."""
    flag = f'--{self.role}={self.requested_name}'
    return user_code.call(flag, self.bind(context))

  def bind(self, context: RunContext) -> functools.partial:
    """Returns the factory, bound to its `arguments`."""
    return functools.partial(self.factory, **self.arguments(context))

  def arguments(self, context: RunContext) -> dict[str, Any]:
    """Returns the arguments of the factory: settings, and values of the run.

    The argument of a role is the selected method.
    """
    arguments = dict(self.values)
    for name in inspect.signature(self.factory).parameters:
      if name in _OF_RUN:
        arguments[name] = vars(context)[name]
    for name, selected in (*self.uses.items(), *self.roles.items()):
      arguments[name] = selected.make(context)
    return arguments


class Selection:
  """The methods of a config with their settings.

  Attributes:
    settings: Settings that differ from their defaults, by key.
  """

  def __init__(self, roles: Roles, values: Mapping[str, Any]):
    """Finds the methods, and checks the values of their settings."""
    self._requested = values
    self.methods: list[MethodConfig] = []
    self.chains = {
      role: self._chain(role, value, table)
      for role, (value, table) in roles.items()
    }
    self._keyed = {
      method.key(name): (method.specs[name], value)
      for method in self.methods
      for name, value in method.values.items()
    }
    self.unused = [key for key in values if key not in self._keyed]
    self.settings = {
      key: value
      for key, (spec, value) in sorted(self._keyed.items())
      if value != spec.default
    }

  def of(self, role: str) -> MethodConfig:
    """Returns the first method that a field names."""
    return self.chains[role][0]

  def get(self, key: str) -> Any:
    """Returns the value of a key, or None if no selected method has it."""
    return self._keyed[key][1] if key in self._keyed else None

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields the key and the text of every setting of every method, once."""
    for key, (spec, value) in self._keyed.items():
      yield key, spec.format(value)

  def _chain(self, role, value, table) -> list[MethodConfig]:
    return [
      self._visit(
        role,
        name,
        registry.short_name(name, table),
        registry.resolve(role, name, table),
      )
      for name in (value if isinstance(value, tuple) else (value,))
    ]

  def _visit(self, role, requested, name, factory, given=None):
    specs = settings_of(role, factory)
    if given is not None:  # The component that is the default of a field.
      specs = {
        key: dataclasses.replace(spec, default=getattr(given, key))
        for key, spec in specs.items()
      }
    for known in self.methods:
      same_role = known.role == role
      if known.name != name or not (same_role or (known.specs and specs)):
        continue
      if known.factory is not factory:
        raise ValueError(
          f'--{known.role} and --{role} name two different methods {name}: '
          'rename one of them.'
        )
      if same_role:
        return known
    method = MethodConfig(role, requested, name, factory, specs)
    self.methods.append(method)
    for setting, spec in specs.items():
      key, value = method.key(setting), spec.default
      if key in self._requested:
        value = spec.checked(key, self._requested[key])
      method.values[setting] = value
      if spec.table is not None:
        (method.roles[setting],) = self._chain(key, value, spec.table)
    for field, inner in component.inner(factory).items():
      method.uses[field] = self._visit(
        role, inner.name, inner.name, type(inner), inner
      )
    return method


def check_unique(flags: str, members: tuple) -> None:
  """Raises a ValueError if two members of a chain have the same name."""
  names = [member.name for member in members]
  if len(set(names)) < len(names):
    raise ValueError(f'{flags} name a component twice: {",".join(names)}.')


def reject(
  key: str,
  selection: Selection,
  known: list[MethodConfig],
) -> NoReturn:
  """Raises a ValueError for a key that no selected method has."""
  *_, name, _ = ['', *str(key).split('.')]
  if key in keys_of(known):
    roles = {each.role: None for each in known if each.name == name}
    flags = [f'--{role}={name}' for role in roles]
    if name in methods.NAMED:
      flags = [f'--method={name}']
    raise ValueError(
      f'--{key} is a setting of {name}, which is not selected: remove it, or '
      f'set {" or ".join(flags)}.'
    )
  keys = keys_of([*selection.methods, *known])
  hint = registry.hint(key, keys, '--{}')
  raise ValueError(f'--{key} is unknown: no method has this setting.{hint}')


def keys_of(methods: list[MethodConfig]) -> dict[str, settings.SettingSpec]:
  """Returns the settings of methods, by key."""
  return {m.key(name): spec for m in methods for name, spec in m.specs.items()}


def known_methods(roles: Roles) -> Iterator[MethodConfig]:
  """Yields every method of this package, once for each of its roles."""
  for role, (_, table) in roles.items():
    for key, factory in table.items():
      declared: Any = component.declared_by(factory)
      # Before the first round there are no updates.
      if role == 'start' and declared.terms is not parts.Server.terms:
        continue
      name, specs = key.partition('<')[0], settings_of(role, factory)
      yield MethodConfig(role, key, name, factory, specs)
      below = {
        f'{name}.{setting}': (spec.default, spec.table)
        for setting, spec in specs.items()
        if spec.table is not None
      }
      yield from known_methods(below)
