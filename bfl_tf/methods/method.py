"""A method as one value."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from bfl_tf import parts as parts_lib
from bfl_tf import training
from bfl_tf.declare import component, registry, settings
from bfl_tf.models import variants
from bfl_tf.server import pooling

_NOTHING: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True)
class Method:
  """A method: its parts, and what else it determines.

  Everything else, such as data, network, rounds and batch size, is the *task*.
  `method | other` has the parts of both.

  Attributes:
    parts: Client parts and server parts, in order, with at most one rule.
    variant: Treatment of the weights, of `training.VARIANTS`.
    optimizer: Client optimizer, of `training.OPTIMIZERS`; None for that of the
      task.
    weighting: Weighting of the clients; None for the number of examples. A
      name, such as 'equal', is possible in place of a component with defaults.
    predictor: Groups of models that predict in place of the global model.
    tune: Default ranges for tuning, such as `{'pvi.damping': 'log:0.03:0.3'}`.
    needs: Fields that the task must set, such as `{'num_rounds': 1}`.
    help: Text of `--describe`, usually the docstring of the module: notation,
      equations and references.
  """

  parts: tuple = ()
  variant: Any = variants.Deterministic()  # noqa: RUF009
  optimizer: Any = None
  learning_rate: float | None = None
  weighting: Any = None
  predictor: str = ''
  tune: Mapping[str, str] = dataclasses.field(default_factory=dict)
  needs: Mapping[str, int] = dataclasses.field(default_factory=dict)
  help: str = ''

  def __or__(self, other: Method) -> Method:
    """Joins two methods; a ValueError names what both set."""
    fields: dict[str, Any] = {}
    empty = Method()
    for name, a in vars(self).items():
      b, nothing = getattr(other, name), getattr(empty, name)
      if name == 'help':
        fields[name] = ' '.join(filter(None, (a, b)))
      elif isinstance(nothing, tuple):
        fields[name] = a + b
      elif isinstance(nothing, dict):
        fields[name] = {**a, **b}
      elif b not in (a, nothing) and a != nothing:
        raise ValueError(f'both methods set {name}: {a} and {b}.')
      else:
        fields[name] = b if a == nothing else a
    return Method(**fields)

  @property
  def flags(self) -> dict[str, Any]:
    """Fields and settings of a config that select this method."""
    flags: dict[str, Any] = {}
    clients, servers = [], []
    for part in self.parts:
      if isinstance(part, parts_lib.Local):
        clients.append(_add(flags, part))
      elif isinstance(part, parts_lib.Pool):
        flags['pooling'] = _add(flags, part, pooling.RULES)
      else:
        servers.append(_add(flags, part))
    for name, names in (('client_parts', clients), ('server_parts', servers)):
      if names:
        flags[name] = tuple(names)
    flags['variant'] = _add(flags, self.variant, training.VARIANTS)
    if self.optimizer is not None:
      flags['client_optimizer'] = _add(
        flags, self.optimizer, training.OPTIMIZERS
      )
      flags['client_learning_rate'] = self.learning_rate
    if self.weighting is not None:
      flags['weighting'] = _add(flags, self.weighting, pooling.WEIGHTINGS)
    if self.predictor:
      flags['predictor'] = self.predictor
    return flags


def _add(
  flags: dict[str, Any], thing: Any, table: Mapping[str, Any] = _NOTHING
) -> str:
  """Adds the settings of a component; returns the name that selects it."""
  if isinstance(thing, str):
    return thing
  kind: Any = type(thing)
  named = [name for name, known in table.items() if known is kind]
  if named:
    name = named[0]
  elif kind.__module__.startswith('bfl_tf.'):
    name = thing.name
  else:
    name = registry.name_of(kind)
  prefix = registry.short_name(name, table)
  for setting, spec in settings.of(kind).items():
    value = getattr(thing, setting)
    if spec.table is not None and not isinstance(value, str):
      value = _add(flags, value, spec.table)
    if value != spec.default:
      flags[f'{prefix}.{setting}'] = value
  for field, default in component.inner(kind).items():
    inner = getattr(thing, field)
    if inner != default:
      _add(flags, inner)
  return name
