"""Whole methods by name: `--method=pvi` selects all components of a method.

A *task* is everything else: data,
partition, network, rounds, batch size. The client optimizer belongs to the
task, unless the method names one, or the optimizer of the task fits a
posterior. A *method file* is a .flags file with `--method` and flags that are
stronger than those of this method.
"""

from collections.abc import Collection, Mapping
import os
import pathlib
from typing import Any, NamedTuple

from bfl_tf.config import catalog, flagfile
from bfl_tf.config.fields import FIELDS, ROLES, roles_of
from bfl_tf.config.selection import Selection
from bfl_tf.declare import registry
from bfl_tf.methods import Method, NAMED

# Fields of a method; other fields are of the task.
OF_METHOD = (
  'variant', 'client_parts', 'pooling', 'weighting', 'server_parts',
  'start', 'batch_norm', 'predictor',
)  # fmt: skip
# Fields that a method sets only together with the client optimizer.
OF_OPTIMIZER = (
  'client_optimizer', 'client_learning_rate', 'client_weight_decay',
  'decay_biases', 'max_gradient_norm',
)  # fmt: skip


class MethodFlags(NamedTuple):
  """A method as flags; the other attributes are those of `methods.Method`."""

  flags: dict[str, Any]
  tune: Mapping[str, str]
  needs: Mapping[str, int]
  help: str


def is_file(name: str | os.PathLike) -> bool:
  """Returns whether the value of `--method` is the path of a method file."""
  return str(name).endswith('.flags')


def label(name: str | os.PathLike, typed: Collection[str] = ()) -> str:
  """Returns the name that tables show for a method.

  It is empty if a stronger value selects another component, because the run
  then has another method.
  """
  changed = {*OF_METHOD, 'client_optimizer'} & {*typed}
  text = '' if changed else str(name)
  return pathlib.Path(text).stem if is_file(text) else text.rpartition(':')[2]


def read(name: str | os.PathLike) -> MethodFlags:
  """Returns the method of a name, of `package.module:name` or of a file."""
  if not is_file(name):
    return _method_flags(str(name))
  if not pathlib.Path(name).is_file():
    raise ValueError(f'--method={name} is not a file.')
  own = flagfile.read(name, FIELDS, catalog.known_settings())
  if 'method' not in own:
    raise ValueError(f'{name}: add --method=NAME, the method that it changes.')
  base = _method_flags(own.pop('method'))
  flags = {**base.flags, **own}
  unused = _unused(name, flags, own)
  return base._replace(
    flags={key: value for key, value in flags.items() if key not in unused}
  )


def _method_flags(name: str) -> MethodFlags:
  method: Any = NAMED.get(name)
  if not method and ':' not in name:
    raise ValueError(
      f'--method={name} is unknown.{registry.hint(name, NAMED)} Choose one of '
      f'{", ".join(sorted(NAMED))}, package.module:name, or the path of a '
      '.flags file.'
    )
  method = method or registry.imported('method', name)
  if not isinstance(method, Method):
    raise ValueError(f'--method={name} is not a bfl_tf.methods.Method.')
  return MethodFlags(method.flags, method.tune, method.needs, method.help)


def _unused(path, flags, own) -> set[str]:
  """Returns the settings of components that a file replaces."""
  of_file = [role for role in ROLES if role in OF_METHOD or role in flags]
  settings = _settings(flags)
  unused = {*Selection(roles_of(flags, of_file), settings).unused}
  of_optimizer = OF_OPTIMIZER if 'client_optimizer' in flags else ()
  known = {*OF_METHOD, *of_optimizer, *settings} - unused
  for key in own:
    if key not in known:
      raise ValueError(
        f'{path}: --{key} belongs to a task, to an optimizer or to a component '
        'that this method does not select: remove it.'
      )
  return unused


def expanded(
  name: str | os.PathLike,
  values: Mapping[str, Any],
  typed: Collection[str] = (),
) -> dict[str, Any]:
  """Replaces the method of a task by another one.

  Args:
    typed: Names of values that are stronger than the method.
  """
  own, _, needs, _ = read(name)
  replaced = [*OF_METHOD]
  if 'client_optimizer' in own or _fits_a_posterior(values, typed):
    replaced += OF_OPTIMIZER
  task = {k: v for k, v in values.items() if k not in replaced}
  roles = roles_of(task, [r for r in ROLES if r not in replaced])
  # A setting of the task may be of a component that it does not select.
  of_task = catalog.settings_of_roles(tuple(roles))
  settings = _settings(task)
  dropped = {*Selection(roles, settings).unused} - of_task.keys()
  task = {k: v for k, v in task.items() if k not in dropped}
  flags = {**task, **own, **{k: v for k, v in values.items() if k in typed}}
  # A typed flag may replace a component of the method.
  unused = {*Selection(roles_of(flags), _settings(flags)).unused}
  dropped = unused & own.keys() - {*typed}
  flags = {k: v for k, v in flags.items() if k not in dropped}
  for flag, value in needs.items():
    field = FIELDS[flag]
    if field.checked(flag, flags.get(flag, field.default)) != value:
      raise ValueError(f'--method={name} needs --{flag}={value}.')
  return flags


def _fits_a_posterior(values, typed):
  """Returns whether the optimizer of a task is the method that is replaced."""
  if 'client_optimizer' in typed:
    return False
  ((name, table),) = roles_of(values, ['client_optimizer']).values()
  factory = registry.resolve('client_optimizer', name, table)
  return getattr(factory, 'posterior_scope', 'layers') == 'all'


def _settings(values):
  return {key: value for key, value in values.items() if '.' in key}
