"""Tests that injected arguments are not settings."""

import dataclasses
import inspect

from bfl_tf import parts
from bfl_tf.config import catalog, selection
from bfl_tf.declare import component


def test_injected_arguments_have_no_default_and_are_not_settings():
  names = [f.name for f in dataclasses.fields(selection.RunContext)]
  for method in catalog.known_methods():
    # Fields that are components have their own settings.
    fixed = {'run', *component.inner(method.factory)}
    fixed |= getattr(method.factory, 'keywords', {}).keys()
    for argument, its in inspect.signature(method.factory).parameters.items():
      where = f'{method.role}: {method.key(argument)}'
      if argument in names:
        assert its.default is its.empty, where
        assert argument not in method.specs, where
      elif its.default is not its.empty and argument not in fixed:
        assert argument in method.specs, where


@dataclasses.dataclass(frozen=True)
class Shrink(parts.Server):
  """A server part with the same name as a part in another test."""

  factor: float = 0.5
