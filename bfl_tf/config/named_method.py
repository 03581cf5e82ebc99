"""Whole methods by name: `--method=pvi` selects all components of a method.

A `Method` contains the flags of a method. A *task* is everything else: data,
partition, network, rounds, batch size. The client optimizer belongs to the
task, unless the method names one, or the optimizer of the task fits a
posterior. A *method file* is a .flags file with a method. If it contains
`--method`, it is a variant of that method: its other flags are stronger.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import os
import pathlib
from typing import Any

from bfl_tf.config import catalog, flagfile
from bfl_tf.config.fields import FIELDS, ROLES, roles_of
from bfl_tf.config.selection import Selection
from bfl_tf.declare import registry
from bfl_tf.declare.settings import Setting, SettingSpec
from bfl_tf.methods import Method, NAMED

# Fields of a method; other fields are of the task.
OF_METHOD = (
  'variant', 'client_parts', 'pooling', 'weighting', 'server_step', 'refine',
  'start', 'batch_norm', 'predictor',
)  # fmt: skip
# Fields that a method sets only together with the client optimizer.
OF_OPTIMIZER = (
  'client_optimizer', 'client_learning_rate', 'client_weight_decay',
  'decay_biases', 'max_gradient_norm',
)  # fmt: skip
# Flags of a method file for the attributes of `Method`, such as
# --needs=num_rounds=1.
_OF_FILE = {
  name: SettingSpec(name, str, True, (), Setting())
  for name in ('needs', 'tune')
}


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


def read(name: str | os.PathLike) -> Method:
  """Returns the method of a name, of `package.module:name` or of a file.

  Raises:
    ValueError: The method sets a flag of the task, or a setting of a component
      that it does not select.
  """
  if not is_file(name):
    return _named(str(name))
  if not pathlib.Path(name).is_file():
    raise ValueError(f'--method={name} is not a file.')
  known = {**FIELDS, **_OF_FILE}
  flags = flagfile.read(name, known, catalog.known_settings())
  base = _named(flags.pop('method')) if 'method' in flags else Method({})
  pairs = {
    key: dict(_pair(name, key, text) for text in flags.pop(key, ()))
    for key in _OF_FILE
  }
  found = Method(
    {**base.flags, **flags},
    {**base.tune, **pairs['tune']},
    {**base.needs, **pairs['needs']},
    base.help,
  )
  return _checked(name, found, flags)


def _named(name: str) -> Method:
  if name not in NAMED and ':' not in name:
    raise ValueError(
      f'--method={name} is unknown.{registry.hint(name, NAMED)} Choose one of '
      f'{", ".join(sorted(NAMED))}, package.module:name, or the path of a '
      '.flags file.'
    )
  found = NAMED.get(name) or registry.imported('method', name)
  if not isinstance(found, Method):
    raise ValueError(
      f'--method={name} is of type {type(found).__name__}: name a '
      'bfl_tf.methods.Method.'
    )
  return _checked(f'--method={name}', found, found.flags)


def _pair(name, key, text):
  flag, is_pair, value = text.partition('=')
  if not is_pair:
    raise ValueError(f'{name}: --{key}={text} must be flag=value.')
  return flag, value


def _checked(source, method: Method, own: Iterable[str]) -> Method:
  """Returns the method without settings of components that it replaces.

  Args:
    source: Place of the method, for errors.
    own: Flags that are not from another method; none may be unused.
  """
  flags = method.flags
  for key in (*method.needs, *(key for key in flags if '.' not in key)):
    if key not in FIELDS:
      raise ValueError(f'{source}: --{key} is unknown.{catalog.near(key)}')
  of_file = [role for role in ROLES if role in OF_METHOD or role in flags]
  roles, settings = roles_of(flags, of_file), _settings(flags)
  unused = {*Selection(roles, settings).unused}
  for key in own:
    if key in unused:
      raise ValueError(
        f'{source}: --{key} is a setting of a component that the method does '
        'not select: remove it.'
      )
    if key in OF_OPTIMIZER and 'client_optimizer' not in flags:
      raise ValueError(
        f'{source}: --{key} needs --client_optimizer in the same method.'
      )
    if key not in (*OF_METHOD, *OF_OPTIMIZER) and key not in settings:
      raise ValueError(
        f'{source}: --{key} describes a task, not a method: remove it.'
      )
  kept = {key: value for key, value in flags.items() if key not in unused}
  needs = {key: FIELDS[key].checked(key, n) for key, n in method.needs.items()}
  return dataclasses.replace(method, flags=kept, needs=needs)


def expanded(
  name: str | os.PathLike,
  values: Mapping[str, Any],
  typed: Collection[str] = (),
) -> dict[str, Any]:
  """Replaces the method of a task by another one.

  Args:
    name: Value of `--method`.
    values: Values of the task by field or setting.
    typed: Names of values that are stronger than the method.

  Raises:
    ValueError: Raised as by `read`, or the task does not fit the method.
  """
  method = read(name)
  own = method.flags
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
  made = {**task, **own, **{k: v for k, v in values.items() if k in typed}}
  # A typed flag may replace a component of the method.
  unused = {*Selection(roles_of(made), _settings(made)).unused}
  dropped = unused & own.keys() - {*typed}
  made = {k: v for k, v in made.items() if k not in dropped}
  for flag, value in method.needs.items():
    field = FIELDS[flag]
    if field.checked(flag, made.get(flag, field.default)) != value:
      raise ValueError(f'--method={name} needs --{flag}={value}.')
  return made


def _fits_a_posterior(values, typed):
  """Returns whether the optimizer of a task is the method that is replaced."""
  if 'client_optimizer' in typed:
    return False
  ((name, table),) = roles_of(values, ['client_optimizer']).values()
  factory = registry.resolve('client_optimizer', name, table)
  return getattr(factory, 'posterior_scope', 'layers') == 'all'


def _settings(values):
  return {key: value for key, value in values.items() if '.' in key}
