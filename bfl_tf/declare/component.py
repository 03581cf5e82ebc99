"""The base class of components, which flags select and rounds call."""

from collections.abc import Mapping
import difflib
import inspect
from typing import Any, ClassVar


class Component:
  """Base of client parts, stages, rules, weightings, attacks and optimizers.

  Subclass the base class of one kind, such as `training.Part`, as a frozen
  dataclass. Fields with a default are settings. A hook that a subclass does not
  override does nothing and costs nothing.

  Attributes:
    name: Name of the component in its random draws, its columns of
      `metrics.csv` and its error messages.
    uses: Classes of the components that this one builds itself, by name. It
      gets a factory of each as the argument `make_<name>`.
    sets: Settings that this component passes to these factories, by name. They
      are not flags.
    server_stage: Class of the server stage that this client part needs. The
      stage is added at the front of `--server_step`, and the part receives the
      arrays of its hook `shared`.
  """

  name: ClassVar[str] = ''
  uses: ClassVar[Mapping[str, type]] = {}
  sets: ClassVar[Mapping[str, tuple]] = {}
  server_stage: ClassVar[type['Component'] | None] = None


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
  else:
    defect = _hook_defect(type(component), base)
  if defect:
    found = f'{type(component).__module__}:{type(component).__qualname__}'
    if type(component).__module__ == 'builtins':
      found = f'the returned value {component!r}'
    raise ValueError(f'--{flag}: {found} {defect}')


def _hook_defect(made: type, base: type) -> str:
  """Returns what is wrong with the names and arguments of the hooks, or ''."""
  hooks = {
    name: hook
    for name, hook in inspect.getmembers(base, inspect.isfunction)
    if not name.startswith('__') or name == '__call__'
  }
  for name, own in inspect.getmembers(made, inspect.isfunction):
    near = difflib.get_close_matches(name, hooks, n=1, cutoff=0.8)
    if name not in hooks and near and not name.startswith('_'):
      return (
        f'has no hook {name}: did you mean {near[0]}? Begin the name '
        'of a helper with _.'
      )
    if name not in hooks or own is hooks[name]:
      continue
    arguments = list(inspect.signature(hooks[name]).parameters)
    signature = inspect.signature(own)
    try:
      signature.bind(*arguments)
    except TypeError:
      expected = ', '.join(arguments)
      return f'must define {name}({expected}), not {name}{signature}.'
  return ''
