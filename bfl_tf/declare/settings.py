"""Settings of methods, declared in the signatures of the methods.

A setting is a field of a method's dataclass, or an argument of its function:

  alpha: float = setting(0.5, 'Concentration.', gt=0)
  alpha: Annotated[float, Setting('Concentration.', gt=0)] = 0.5

The flag is `--<method>.<setting>`. User code may write `alpha: float = 0.5`. A
setting with a `table` is a *role*: its value names another method, which has
settings too.
"""

from collections.abc import Callable, Mapping
import csv
import dataclasses
import functools
import inspect
import io
import math
import operator
import types
import typing
from typing import Any

import numpy as np

from bfl_tf.declare import registry

_DECLARED = 'setting'  # Key of the metadata of a field.
_KINDS = (bool, int, float, str)
_NAMES = {int: 'an integer', float: 'a number', bool: 'true or false'}
_PLURALS = {int: 'integers', float: 'numbers'}
# Each comparison is false for NaN.
_BOUNDS = {
  'ge': ('at least', operator.ge),
  'gt': ('above', operator.gt),
  'le': ('at most', operator.le),
  'lt': ('below', operator.lt),
}


@dataclasses.dataclass(frozen=True)
class Setting:
  """Bounds, choices and help text of a setting.

  Attributes:
    table: Methods by name, for a setting whose value names a method.
  """

  help: str = ''
  ge: float | None = None
  gt: float | None = None
  le: float | None = None
  lt: float | None = None
  choices: tuple[str, ...] = ()
  table: Mapping[str, Any] | None = None


def setting(default: Any, help: str | Setting = '', **bounds: Any) -> Any:
  """Returns a field of a dataclass, with the attributes of `Setting`."""
  declared = help if isinstance(help, Setting) else Setting(help, **bounds)
  return dataclasses.field(default=default, metadata={_DECLARED: declared})


@dataclasses.dataclass(frozen=True)
class SettingSpec:
  """A setting with its name, type and default.

  Attributes:
    kind: `bool`, `int`, `float` or `str`; if `many`, of each item.
    many: Whether the value is a tuple.
  """

  name: str
  kind: type
  many: bool
  default: Any
  setting: Setting

  @property
  def table(self) -> Mapping[str, Any] | None:
    """Methods that the setting may name, or None."""
    return self.setting.table

  @property
  def is_free_text(self) -> bool:
    """Whether any text is valid: there are no choices and no table."""
    return self.kind is str and not (self.setting.choices or self.setting.table)

  @property
  def help(self) -> str:
    """The help text, with the values that the setting may have."""
    names = sorted(self.setting.table or ()) or list(self.setting.choices)
    text = self.setting.help
    return f'{text} One of: {", ".join(names)}.' if names else text

  def parse(self, flag: str, text: str) -> Any:
    """Returns the value of a flag's text."""
    try:
      if self.many:
        # A quoted item may contain a comma, as in a .csv file.
        items = next(csv.reader([text]), [])
        return tuple(self._one(item) for item in items if item)
      return self._one(text)
    except (ValueError, csv.Error):
      what = _NAMES.get(self.kind, 'text')
      if self.many:
        plural = _PLURALS.get(self.kind, 'texts')
        what = f'a comma-separated list of {plural}, such as 0,1,2'
      raise ValueError(f'--{flag}={text} must be {what}.') from None

  def format(self, value: Any) -> str:
    """Returns the text of a value; the inverse of `parse`."""
    if not self.many:
      return str(value)
    line = io.StringIO()
    csv.writer(line, lineterminator='').writerow(value)
    return line.getvalue()

  def checked(self, flag: str, value: Any) -> Any:
    """Returns the value in the type of the setting, such as a float for 1.

    A text is parsed like a flag, and a function is replaced by its name.
    """
    if not self.many:
      return self._checked(flag, value)
    if isinstance(value, str):
      return self.checked(flag, self.parse(flag, value))
    if callable(value):
      value = (value,)
    if not isinstance(value, tuple | list):
      raise ValueError(f'--{flag}={value!r} must be a list.')
    return tuple(self._checked(flag, item) for item in value)

  def _one(self, text):
    if self.kind is not bool:
      return self.kind(text)
    known = {'true': True, '1': True, 'false': False, '0': False}
    if text.lower() not in known:
      raise ValueError(text)
    return known[text.lower()]

  def _checked(self, flag, value):
    if isinstance(value, str) and self.kind is not str:
      value = self.parse(flag, value) if not self.many else value
    # Loops over settings often pass NumPy scalars.
    value = value.item() if isinstance(value, np.generic) else value
    if self.kind is str and callable(value):
      value = registry.name_of(value)
    if self.kind is float and type(value) is int:
      value = float(value)
    lines = [value] if not isinstance(value, str) else value.splitlines()
    is_kind = type(value) is self.kind
    if not is_kind or lines not in ([], [value]):
      what = _NAMES.get(self.kind, 'a text of one line')
      raise ValueError(f'--{flag}={value!r} must be {what}.')
    if self.setting.choices:
      registry.check_choice(flag, str(value), self.setting.choices)
    is_float = self.kind is float
    most, text = (math.inf, 'finite') if is_float else (2**31, 'below 2^31')
    if not isinstance(value, str) and not abs(value) < most:
      raise ValueError(f'--{flag}={value} must be {text}.')
    for name, (words, holds) in _BOUNDS.items():
      bound = getattr(self.setting, name)
      if bound is not None and not holds(value, bound):
        raise ValueError(f'--{flag}={value} must be {words} {bound}.')
    return value


@functools.cache
def of(thing: Callable) -> Mapping[str, SettingSpec]:
  """Returns the settings of a class or function, by name of the argument."""
  try:
    parameters = inspect.signature(thing).parameters
  except (TypeError, ValueError):
    return {}
  # Arguments that a partial binds are not settings.
  bound = thing.keywords if isinstance(thing, functools.partial) else {}
  hints = _hints(thing)
  fields = getattr(thing, '__dataclass_fields__', {})
  specs = {}
  for name, parameter in parameters.items():
    if parameter.default is not parameter.empty and name not in bound:
      field = fields.get(name)
      declared = field.metadata.get(_DECLARED) if field else None
      argument = _spec(name, hints.get(name), parameter.default, declared)
      if argument is not None:
        specs[name] = argument
  return types.MappingProxyType(specs)


def _hints(thing):
  """Returns the annotations of the arguments of a class or function."""
  while isinstance(thing, functools.partial):
    thing = thing.func
  place: Any = thing
  if isinstance(thing, type) and not dataclasses.is_dataclass(thing):
    place = place.__init__
  names: dict[str, Any] | None = None
  if isinstance(place, types.FunctionType):
    # The return type is excluded: its evaluation may import TensorFlow.
    names, hints = place.__globals__, {**place.__annotations__}
    hints.pop('return', None)
    place = types.SimpleNamespace(__annotations__=hints)
  try:
    return typing.get_type_hints(place, names, include_extras=True)
  except (NameError, TypeError, AttributeError) as error:
    # In user code that declares no `Setting`, the defaults are enough.
    if 'Setting' in str(vars(place).get('__annotations__', '')):
      raise ValueError(
        f'{thing.__qualname__}: its annotations cannot be read: {error}.'
      ) from error
    return {}


def _spec(name, hint, default, declared):
  many, inner = isinstance(default, tuple), hint
  for extra in getattr(hint, '__metadata__', ()):
    if isinstance(extra, Setting):
      declared, inner = extra, typing.get_args(hint)[0]
  if many:
    of = typing.get_args(inner)
    kind = of[0] if of else type(default[0]) if default else str
  else:
    kind = inner if inner in _KINDS else type(default)
  if kind not in _KINDS or hasattr(default, '_fields'):
    return None
  return SettingSpec(name, kind, many, default, declared or Setting())
