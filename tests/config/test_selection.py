"""Tests of the methods of a config and their settings."""

import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest
import toys

from bfl_tf.config import config as config_lib
from bfl_tf.config import selection
from bfl_tf.config.catalog import known_methods
from bfl_tf.declare import component

Config = config_lib.Config


@dataclasses.dataclass(frozen=True)
class Shrink(toys.Idle):
  """A custom client part with a setting that has no `Setting`."""

  name: ClassVar[str] = 'shrink'
  factor: float = 0.5
  num_rounds: int = 0


# The names of a server part and of a partition of this package.
momentum = Shrink


def dirichlet(labels, num_clients, alpha=3.0):
  return labels, num_clients, alpha


MINE = f'{__name__}:Shrink'


def test_each_setting_key_belongs_to_one_method():
  found = {}
  for method in known_methods():
    for setting in method.specs:
      factory = found.setdefault(method.key(setting), method.factory)
      assert factory is method.factory


def test_injected_arguments_have_no_default_and_are_not_settings():
  names = [f.name for f in dataclasses.fields(selection.RunContext)]
  for method in known_methods():
    # Fields that are components have their own settings.
    fixed = {'run', *component.inner(method.factory)}
    fixed |= getattr(method.factory, 'keywords', {}).keys()
    for argument, its in inspect.signature(method.factory).parameters.items():
      where = f'{method.role}: {method.key(argument)}'
      has_default = its.default is not its.empty
      assert not (argument in names and has_default), where
      is_setting = has_default and argument not in fixed
      assert (argument in method.specs) == is_setting, where


def test_an_explicit_default_gives_an_equal_config():
  plain = Config(partition='dirichlet')
  explicit = Config(partition='dirichlet', settings={'dirichlet.alpha': 0.5})
  assert plain == explicit and hash(plain) == hash(explicit)
  assert pickle.loads(pickle.dumps(explicit)) == plain


def test_two_components_with_the_same_name_are_rejected():
  ours = Config(partition='dirichlet')
  mine = f'{__name__}:dirichlet'
  assert ours.replace(partition=mine).get('dirichlet.alpha') == 3
  mine = f'{__name__}:momentum'
  with pytest.raises(ValueError, match=r'--client_parts and --server_parts'):
    Config(client_parts=(mine,), server_parts=('momentum',))


def test_settings_of_custom_code_use_the_name_after_the_colon():
  config = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert config.selection.of('client_parts').values == {'factor': 0.25}
  # An argument from the run is not a setting.
  with pytest.raises(ValueError, match=r'--Shrink\.num_rounds'):
    Config(client_parts=(MINE,), settings={'Shrink.num_rounds': 3})


def test_unused_settings_are_ignored_in_presets_but_rejected_if_typed():
  preset = {'partition': 'step', 'step.minor_examples': 5, 'num_rounds': 3}
  behind = {**preset, 'partition': 'iid'}
  assert Config.of(behind) == Config(num_rounds=3)
  assert config_lib.ignored(behind) == ['step.minor_examples']
  assert not config_lib.ignored(preset)
  assert Config.of(preset).settings == {'step.minor_examples': 5}
  with pytest.raises(ValueError, match=r'--step\.minor_examples'):
    Config.of(behind, typed=['step.minor_examples'])
  with pytest.raises(ValueError, match=r'--step\.minor'):
    Config.of({**behind, 'partition': 'step', 'step.minor': 5})


def test_replacing_a_method_removes_its_settings():
  config = Config(partition='step', settings={'step.minor_examples': 5})
  assert config.replace(num_rounds=2).settings == {'step.minor_examples': 5}
  changed = config.replace(seed=1, settings={'step.minor_examples': 7})
  assert changed == config.replace(seed=1, **{'step.minor_examples': 7})
  assert config.replace(partition='iid').settings == {}
  mine = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert mine.replace(client_parts=()) == Config()
  # A field and a setting of the same name are independent.
  small = Config.of({'server_parts': ('distil',), 'distil.batch_size': 7})
  assert small.replace(batch_size=3).get('distil.batch_size') == 7
