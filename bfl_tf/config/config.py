"""The settings of a run."""

from collections.abc import Collection, Mapping
import copy
import dataclasses
import os
from typing import Any, TypeVar

from bfl_tf import server
from bfl_tf.config import catalog, flagfile, named_method
from bfl_tf.config import selection as selection_lib
from bfl_tf.config.fields import (
  Clients,
  Evaluation,
  FIELDS,
  GROUPS,
  Machine,
  MACHINE_FIELDS,
  Model,
  ROLES,
  roles_of,
  Server,
  ServerData,
  Training,
)
from bfl_tf.data import dataset_config
from bfl_tf.declare import component

__all__ = ['FIELDS', 'GROUPS', 'MACHINE_FIELDS', 'ROLES', 'Config']

T = TypeVar('T')


@dataclasses.dataclass(frozen=True)
class Config(
  Machine,
  Evaluation,
  Server,
  Training,
  Model,
  ServerData,
  Clients,
  dataset_config.DatasetConfig,
):
  """The settings of a run; each field except `settings` is a flag of its name.

  `Config(partition='dirichlet', settings={'dirichlet.alpha': 0.1})`.

  Attributes:
    settings: Settings of methods, by `<method>.<setting>`. Only those that
      differ from their defaults are kept.
    method: Name of the method that the config was made with, or ''. It is a
      label: the fields and settings contain the flags of the method.
    given: Arguments of `of`, with which `replace` starts, or None.

  Raises:
    ValueError: A value is out of its bounds, or a setting belongs to no
      selected method. The message names the flag.
  """

  settings: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )

  method: str = dataclasses.field(
    default='', init=False, repr=False, compare=False
  )

  selection: selection_lib.Selection = dataclasses.field(
    init=False, repr=False, compare=False
  )

  given: tuple[dict[str, Any], set[str]] | None = dataclasses.field(
    default=None, init=False, repr=False, compare=False
  )

  def __post_init__(self):
    for name, spec in FIELDS.items():
      object.__setattr__(self, name, spec.checked(name, vars(self)[name]))
    selection = selection_lib.Selection(roles_of(vars(self)), self.settings)
    for key in selection.unused:
      selection_lib.reject(key, selection, catalog.known_methods())
    object.__setattr__(self, 'selection', selection)
    object.__setattr__(self, 'settings', selection.settings)
    self._check_together()

  def _check_together(self):
    """Rejects values that contradict each other."""
    if self.client_timeout and self.engine == 'local':
      raise ValueError(
        f'--client_timeout={self.client_timeout} needs --engine=flower: '
        'training in this process cannot be stopped.'
      )
    chosen = {**vars(self), 'distribution': self.distribution == 'mirrored'}
    for name, other in (
      ('jit_compile', 'distribution'),
      ('jit_compile', 'debug'),
      ('num_server_examples', 'server_fraction'),
    ):
      if chosen[name] and chosen[other]:
        raise ValueError(
          f'--{name}={getattr(self, name)} and --{other}='
          f'{getattr(self, other)} exclude each other: remove one.'
        )
    sampled = self.clients_per_round or self.num_clients
    if not self.min_clients <= sampled <= self.num_clients:
      raise ValueError(
        f'--clients_per_round={self.clients_per_round} (0: all) must lie '
        f'between --min_clients={self.min_clients} and '
        f'--num_clients={self.num_clients}.'
      )

  @classmethod
  def of(
    cls, values: Mapping[str, Any], typed: Collection[str] = ()
  ) -> 'Config':
    """Returns the config of fields and settings in one mapping.

    A setting of a method that is not selected is ignored, so that a preset can
    hold the settings of several methods.

    Args:
      values: Values by field or setting, such as `{'num_rounds': 3,
        'sgd.momentum': 0.9}`. The value of `method` is a name, a
        `package.module:name` or the path of a method file. This method replaces
        the method in the other values.
      typed: Names of values that are stronger than the method. Settings
        among them are not ignored: they raise a ValueError.
    """
    given = dict(values), {*typed}
    method, values = _expanded(values, typed)
    for name in values:
      if name not in FIELDS and '.' not in name:
        raise ValueError(f'--{name} is unknown.{catalog.near(name)}')
    dropped = {*_unused(values)} & catalog.known_settings().keys() - {*typed}
    values = {name: v for name, v in values.items() if name not in dropped}
    fields = {name: v for name, v in values.items() if name in FIELDS}
    chosen = {name: v for name, v in values.items() if name not in FIELDS}
    return cls(**fields, settings=chosen).labelled(method, given)

  def labelled(self, method: str, given: Any = None) -> 'Config':
    """Returns the same config with other attributes `method` and `given`."""
    config = copy.copy(self)
    object.__setattr__(config, 'method', method)
    object.__setattr__(config, 'given', given)
    return config

  @classmethod
  def from_flagfile(cls, path: str | os.PathLike, **changes: Any) -> 'Config':
    """Returns the config of a flag file, with some fields and settings changed.

    `Config.from_flagfile('configs/quickstart.flags', method='pvi')`; `method`
    is that of `of`. The argument `settings` is that of the class.
    """
    changes |= changes.pop('settings', {})
    return cls.of({**read_flagfile(path), **changes}, typed=changes)

  def replace(self, **changes: Any) -> 'Config':
    """Returns the config with other fields and settings, or another `method`.

    The result is that of `of` with these changes, so a new method starts from
    the task as it was given. In a run directory, the values of the method
    belong to the task. Settings of methods that are not selected are dropped.
    """
    changes |= changes.pop('settings', {})
    own: dict[str, Any] = {name: vars(self)[name] for name in FIELDS}
    values, typed = self.given or ({**own, **self.settings}, set())
    values, typed = values | changes, typed | changes.keys()
    unused = {*_unused(_expanded(values, typed)[1])} - changes.keys()
    used = {name: v for name, v in values.items() if name not in unused}
    config = Config.of(used, typed - unused)
    kept_label = named_method.label(self.method, changes)
    label = config.method if 'method' in values else kept_label
    return config.labelled(label, (values, typed))

  def get(self, key: str) -> Any:
    """Returns a field, or a setting; None if its method is not selected."""
    if key in FIELDS or key == 'method':
      return vars(self)[key]
    return self.selection.get(key)

  def context(self, **more: Any) -> selection_lib.RunContext:
    """Returns the values of the run that methods may use."""
    return selection_lib.RunContext(
      seed=self.seed,
      num_clients=self.num_clients,
      clients_per_round=self.clients_per_round,
      num_rounds=self.num_rounds,
      **more,
    )

  @property
  def requested_method(self) -> str:
    """The value of `--method` that the config was made with, or ''."""
    values, _ = self.given or ({}, ())
    return str(values.get('method') or '')

  @property
  def seed_of_data(self) -> int:
    """The seed of `--data_seed`, which is by default that of `--seed`."""
    return self.seed if self.data_seed < 0 else self.data_seed

  @property
  def privacy_mechanism(self) -> server.Privacy:
    """The mechanism of `--privacy`."""
    return self.make('privacy', server.Privacy)

  @property
  def is_numeric(self) -> bool:
    """Whether labels are numbers, not classes."""
    return self.selection.of('likelihood').factory.is_numeric

  @property
  def functions_of_scores(self) -> dict[str, Any]:
    """The functions of `--own_scores`, by name of their columns."""
    chosen = self.selection.chains['own_scores']
    return {method.name: method.factory for method in chosen}

  @property
  def final_round(self) -> int:
    """The number of rounds that the privacy budget allows."""
    return self.privacy_mechanism.affordable(self.num_rounds)

  def make(self, role: str, base: type[T], **more: Any) -> T:
    """Makes the method of a field."""
    method = self.selection.of(role)
    instance = method.make(self.context(**more))
    component.check(f'{role}={method.requested_name}', instance, base)
    return instance

  def chain(self, role: str, base: type[T], **more: Any) -> tuple[T, ...]:
    """Makes the methods of a field, in order; arguments as in `make`."""
    context = self.context(**more)
    methods = self.selection.chains[role]
    members = tuple(each.make(context) for each in methods)
    for method, member in zip(methods, members):
      flag = f'{role}={method.requested_name}'
      component.check(flag, member, base, needs_name=True)
    selection_lib.check_unique(f'--{role}', members)
    return members


def ignored(
  values: Mapping[str, Any], typed: Collection[str] = ()
) -> list[str]:
  """Returns the settings of known methods that these values do not select."""
  _, values = _expanded(values, typed)
  return [key for key in _unused(values) if key in catalog.known_settings()]


def read_flagfile(path: str | os.PathLike) -> dict[str, Any]:
  """Returns the fields and settings that a flag file sets."""
  return flagfile.read(path, FIELDS, catalog.known_settings())


def _expanded(values, typed) -> tuple[str, dict[str, Any]]:
  """Returns the label of the method, and the values with its flags."""
  values = dict(values)
  name = values.pop('method', '')
  if not name:
    return '', values
  values = named_method.expanded(name, values, typed)
  return named_method.label(name, typed), values


def _unused(values) -> list[str]:
  """Returns the settings of methods that these values do not select."""
  settings = {name: v for name, v in values.items() if name not in FIELDS}
  return selection_lib.Selection(roles_of(values), settings).unused
