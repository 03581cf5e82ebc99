"""Whole methods by name: `--method=pvi` selects all components of a method.

A *method file*, `configs/methods/NAME.flags`, contains the flags of a method. A
*task* is everything else: data, partition, network, rounds, batch size. The
client optimizer belongs to the task, unless the method file names one, or the
optimizer of the task fits a posterior.
"""

from collections.abc import Collection, Mapping
import os
import pathlib
from typing import Any

from bfl_tf.config import catalog, flagfile
from bfl_tf.config.fields import FIELDS, ROLES, roles_of
from bfl_tf.config.selection import Selection
from bfl_tf.declare import registry
from bfl_tf.declare.settings import Setting, SettingSpec

# Fields of a method; other fields are of the task.
OF_METHOD = (
  'variant', 'client_parts', 'pooling', 'weighting', 'server_parts',
  'start', 'batch_norm', 'predictor',
)  # fmt: skip
# Fields that a method file sets only together with the client optimizer.
OF_OPTIMIZER = (
  'client_optimizer', 'client_learning_rate', 'client_weight_decay',
  'decay_biases', 'max_gradient_norm',
)  # fmt: skip
_FOLDER = flagfile.INSTALLED / 'configs' / 'methods'
# Flags that a task must set to 1, by value of --needs of the method file.
_ONE = {
  'one_round': ('num_rounds', 'pools the clients once'),
  'one_client': ('clients_per_round', 'trains one client per round'),
}
_NEEDS = SettingSpec('needs', str, True, (), Setting(choices=tuple(_ONE)))
# Default ranges of `bfl-tf sweep --tune=default`.
_TUNE = SettingSpec('tune', str, True, (), Setting())


def names() -> list[str]:
  """Returns the names of the installed method files."""
  return sorted(path.stem for path in _FOLDER.glob('*.flags'))


def path_of(name: str | os.PathLike) -> pathlib.Path:
  """Returns the method file of a name or a path."""
  path = pathlib.Path(name)
  found = path if path.suffix else _FOLDER / f'{name}.flags'
  if path.suffix and not path.is_file():
    raise ValueError(f'--method={name} is not a file.')
  if not found.is_file():
    raise ValueError(
      f'--method={name} is unknown.{registry.hint(str(name), names())} Choose '
      f'one of {", ".join(names())}, or the path of a .flags file.'
    )
  return found


def label(name: str | os.PathLike, typed: Collection[str] = ()) -> str:
  """Returns the name that tables show for a method.

  It is empty if a stronger value selects another component, because the run
  then has another method.
  """
  changed = {*OF_METHOD, 'client_optimizer'} & {*typed}
  return '' if changed or not name else pathlib.Path(name).stem


def read(name: str | os.PathLike) -> dict[str, Any]:
  """Returns the flags of a method file, with its `needs` and ranges `tune`.

  Raises:
    ValueError: The file contains a flag of the task, or a setting of a
      component that it does not select.
  """
  path = path_of(name)
  known = {**FIELDS, 'needs': _NEEDS, 'tune': _TUNE}
  found = flagfile.read(path, known, catalog.known_settings())
  _NEEDS.checked('needs', found.get('needs', ()))
  of_file = [role for role in ROLES if role in OF_METHOD or role in found]
  roles, settings = roles_of(found, of_file), _settings(found)
  unused = Selection(roles, settings).unused
  for key in found:
    if key in unused:
      raise ValueError(
        f'{path}: --{key} is a setting of a component that the file does not '
        'select: remove it.'
      )
    if key in OF_OPTIMIZER and 'client_optimizer' not in found:
      raise ValueError(
        f'{path}: --{key} needs --client_optimizer in the same file.'
      )
    allowed = (*OF_METHOD, *OF_OPTIMIZER, 'needs', 'tune')
    if key not in allowed and key not in settings:
      raise ValueError(
        f'{path}: --{key} describes a task, not a method: remove it.'
      )
  return found


def needed(name: str | os.PathLike) -> dict[str, int]:
  """Returns the flags that a task needs for a method, with their values."""
  return {_ONE[need][0]: 1 for need in read(name).get('needs', ())}


def expanded(
  name: str | os.PathLike,
  values: Mapping[str, Any],
  typed: Collection[str] = (),
) -> dict[str, Any]:
  """Replaces the method of a task by that of the method file.

  Args:
    name: Name or path of the method file.
    values: Values of the task by field or setting.
    typed: Names of values that are stronger than the method file.

  Raises:
    ValueError: Raised as by `read`, or the task does not fit the method.
  """
  own = read(name)
  needs, _ = own.pop('needs', ()), own.pop('tune', ())
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
  for need in needs:
    flag, why = _ONE[need]
    field = FIELDS[flag]
    if field.checked(flag, made.get(flag, field.default)) != 1:
      raise ValueError(f'--method={name} {why}: set --{flag}=1.')
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
