"""Tests of the methods of a config and their settings."""

import dataclasses
import pickle
import re
from typing import ClassVar

import pytest
import toys

from bfl_tf.config import config as config_lib
from bfl_tf.config.config import known_methods

Config = config_lib.Config


@dataclasses.dataclass(frozen=True)
class Shrink(toys.Idle):
  """A custom client part with a setting that has no `Setting`."""

  name: ClassVar[str] = 'shrink'
  factor: float = 0.5
  num_rounds: int = 0


def dirichlet(labels, num_clients, alpha=3.0):
  return labels, num_clients, alpha


MINE = f'{__name__}:Shrink'


def values(config, role):
  return config.selection.of(role).values


def test_a_key_is_one_thing():
  found = {}
  for method in known_methods():
    for setting in method.specs:
      factory = found.setdefault(method.key(setting), method.factory)
      assert factory is method.factory


def test_a_setting_reaches_its_method_and_others_keep_their_defaults():
  config = Config(partition='dirichlet', settings={'dirichlet.alpha': 2})
  assert values(config, 'partition') == {
    'alpha': 2.0,
    'min_examples': 10,
  }
  assert values(config, 'pooling') == {'min_scale': 1e-6}


def test_a_default_said_is_the_same_run():
  plain = Config(partition='dirichlet')
  said = Config(partition='dirichlet', settings={'dirichlet.alpha': 0.5})
  assert plain == said and hash(plain) == hash(said)
  assert pickle.loads(pickle.dumps(said)) == plain


def test_two_things_of_one_name_are_refused():
  ours = Config(partition='dirichlet')
  mine = f'{__name__}:dirichlet'
  assert ours.replace(partition=mine).get('dirichlet.alpha') == 3
  with pytest.raises(ValueError, match=r'--client_parts and --server_step'):
    Config(client_parts=(MINE,), server_step=('test_context:Shrink',))


def test_anybodys_own_gets_its_settings_by_what_follows_the_colon():
  config = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert values(config, 'client_parts') == {'factor': 0.25}
  # An argument from the run is not a setting.
  with pytest.raises(ValueError, match=r'--Shrink\.num_rounds'):
    Config(client_parts=(MINE,), settings={'Shrink.num_rounds': 3})


def test_a_member_of_a_family_has_the_familys_settings():
  config = Config(model='resnet14', settings={'resnet.normalization': 'group'})
  assert values(config, 'model') == {'normalization': 'group'}


@pytest.mark.parametrize(
  'key, value, said',
  [
    ('step.minor_examples', 5, 'set --partition=step'),
    ('mlp.hidden_unit', 3, 'Did you mean --mlp.hidden_units?'),
    ('mpl.hidden_units', 3, "Did you mean 'mlp'?"),
    ('mlp.hidden_units', (0,), ''),
  ],
)
def test_refused(key, value, said):
  with pytest.raises(ValueError, match=f'^--{re.escape(key)}.*') as refused:
    Config(settings={key: value})
  assert said in str(refused.value)


def test_a_presets_settings_lie_idle_but_typed_ones_do_not():
  preset = {'partition': 'step', 'step.minor_examples': 5, 'num_rounds': 3}
  behind = {**preset, 'partition': 'iid'}
  assert Config.of(behind) == Config(num_rounds=3)
  assert Config.of(preset).settings == {'step.minor_examples': 5}
  with pytest.raises(ValueError, match=r'--step\.minor_examples'):
    Config.of(behind, typed=['step.minor_examples'])
  with pytest.raises(ValueError, match=r'--step\.minor'):
    Config.of({**behind, 'partition': 'step', 'step.minor': 5})


def test_what_a_method_gives_another_is_no_setting():
  refused = {'distil.optimizer': 'sgd'}
  students = {'refine': ('students',), 'students.students': ('C:swa',)}
  with pytest.raises(ValueError, match=r'--distil\.optimizer'):
    Config.of({**students, **refused}, typed=refused)


def test_a_stage_that_a_part_brings_has_its_settings():
  experiment = toys.experiment(
    client_parts=('toys:Follower',), **{'momentum.decay': 0.5}
  )
  assert experiment.config.get('momentum.decay') == 0.5
  (stage,) = experiment.method.stages
  assert stage.decay == 0.5


def test_replaced_methods_leave_their_settings():
  config = Config(partition='step', settings={'step.minor_examples': 5})
  assert config.replace(num_rounds=2).settings == {'step.minor_examples': 5}
  said = config.replace(seed=1, settings={'step.minor_examples': 7})
  assert said == config.replace(seed=1, **{'step.minor_examples': 7})
  assert config.replace(partition='iid').settings == {}
  mine = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert mine.replace(client_parts=()) == Config()
  # A field and a setting of the same name are independent.
  small = Config.of({'refine': ('distil',), 'distil.batch_size': 7})
  assert small.replace(batch_size=3).get('distil.batch_size') == 7
