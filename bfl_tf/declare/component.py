"""The base class of components, which flags select and rounds call."""

from typing import Any, ClassVar


class Component:
  """Base of parts, weightings, attacks and optimizers.

  Subclass the base class of one kind, such as `parts.Local`, as a frozen
  dataclass. Fields with a default are settings; a field whose default is a
  component is a component with its own settings. A hook that a subclass does
  not override does nothing and costs nothing.

  Attributes:
    name: Name of the component in its random draws, its columns of
      `metrics.csv` and its error messages.
  """

  name: ClassVar[str] = ''


def inner(factory: Any) -> dict[str, Component]:
  """Returns the components in the fields of a component class, by field."""
  fields = getattr(factory, '__dataclass_fields__', {})
  return {
    name: field.default
    for name, field in fields.items()
    if isinstance(field.default, Component)
  }


def declared_by(factory: Any) -> type[Component]:
  """Returns the component class, or `Component` for another factory."""
  is_component = isinstance(factory, type) and issubclass(factory, Component)
  return factory if is_component else Component


def overrides(component: Component, base: type, hook: str) -> bool:
  """Returns whether a component has its own implementation of a hook."""
  return getattr(type(component), hook) is not getattr(base, hook)


def check(
  flag: str, component: Any, base: type, needs_name: bool = False
) -> None:
  """Raises a ValueError unless user code inherits from the base class."""
  defect = ''
  kind: Any = base
  if not isinstance(component, kind):
    defect = f'must inherit from {base.__module__}.{base.__qualname__}.'
  elif needs_name and not component.name:
    defect = 'needs the class attribute `name`.'
  if defect:
    subject = f'{type(component).__module__}:{type(component).__qualname__}'
    if type(component).__module__ == 'builtins':
      subject = f'the returned value {component!r}'
    raise ValueError(f'--{flag}: {subject} {defect}')
