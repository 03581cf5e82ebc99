"""Tests that injected arguments are not settings."""

import dataclasses
import inspect
from typing import ClassVar

import pytest
import toys

from bfl_tf.config import catalog, selection
from bfl_tf.runs import flags_file
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class Warm(pooling.RULES['nwa']):
  """A rule whose setting has the same name as a setting of Flipout."""

  temperature: float = 0.9
  batch_size: int = 7


@dataclasses.dataclass(frozen=True)
class Leaky(toys.Idle):
  """A part whose setting has the same name as a setting of MC dropout."""

  rate: float = 0.5
  seed: int = -1
  name: ClassVar[str] = 'leaky'


WARM, LEAKY = f'{__name__}:Warm', f'{__name__}:Leaky'


def test_injected_arguments_have_no_default_and_are_not_settings():
  names = [f.name for f in dataclasses.fields(selection.RunContext)]
  layouts = ('layout', 'shapes')
  for method in catalog.known_methods():
    for argument, its in inspect.signature(method.factory).parameters.items():
      where = f'{method.role}: {method.key(argument)}'
      if argument in names:
        assert its.default is its.empty, where
        assert argument not in method.specs, where
      elif its.default is not its.empty and argument not in layouts:
        assert argument in method.specs, where


@pytest.mark.parametrize('variant', ['mc_dropout', 'flipout'])
def test_settings_of_custom_classes_are_independent_of_the_variant(variant):
  plain = toys.experiment(
    variant=variant, pooling=WARM, client_parts=(LEAKY,), seed=3
  )
  assert (plain.method.rule.temperature, plain.method.rule.batch_size) == (
    0.9, 7,
  )  # fmt: skip
  (part,) = plain.method.parts
  # Arguments from the run replace defaults.
  assert part == Leaky(rate=0.5, seed=3)
  lines = flags_file.flag_lines(plain.config)
  assert {'--Warm.temperature=0.9', '--Leaky.rate=0.5'} <= set(lines)
  assert not [line for line in lines if 'Leaky.seed' in line]
  changes = {'Warm.temperature': 0.2, 'Leaky.rate': 0.25}
  config = plain.config.replace(**changes)
  assert {key: config.get(key) for key in changes} == changes


@dataclasses.dataclass(frozen=True)
class Shrink:
  """A stage with the same name as a part in another test."""

  factor: float = 0.5
