"""Which methods a config chooses, and what their settings are."""

import dataclasses
import pickle
import re
import sys
from typing import Annotated, Any, ClassVar

import pytest
import toys

from bfl_tf import config as config_lib
from bfl_tf import training
from bfl_tf.settings import Setting

Config = config_lib.Config


@dataclasses.dataclass(frozen=True)
class Shrink(toys.Idle):
  """A client part of anybody's, with a setting that has no `Setting`."""

  name: ClassVar[str] = 'shrink'
  factor: float = 0.5
  num_rounds: int = 0


MINE = f'{__name__}:Shrink'


@pytest.fixture(autouse=True)
def here(monkeypatch):
  monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def values(config, role):
  return config.chosen.values(config.chosen.of(role))


def test_a_setting_reaches_its_method_and_others_keep_their_defaults():
  config = Config(partition='dirichlet', settings={'dirichlet.alpha': 2})
  assert values(config, 'partition') == {'alpha': 2.0, 'min_examples': 10}
  assert values(config, 'pooling') == {'min_scale': 1e-6}


def test_a_default_said_is_the_same_run():
  plain = Config(partition='dirichlet')
  said = Config(partition='dirichlet', settings={'dirichlet.alpha': 0.5})
  assert plain == said and hash(plain) == hash(said)
  assert pickle.loads(pickle.dumps(said)) == plain


def test_a_bare_name_sets_every_role_and_a_role_its_own():
  both = {'start': ('fine_tune',), 'refine': ('fine_tune',)}
  config = Config(**both, settings={
    'fine_tune.epochs': 5, 'start.fine_tune.epochs': 7,
  })  # fmt: skip
  assert values(config, 'start')['epochs'] == 7
  assert values(config, 'refine')['epochs'] == 5
  assert config.settings == {
    'start.fine_tune.epochs': 7, 'refine.fine_tune.epochs': 5,
  }  # fmt: skip
  same = Config(**both, settings={
    'refine.fine_tune.epochs': 7, 'start.fine_tune.epochs': 7,
  })  # fmt: skip
  assert same.settings == {'fine_tune.epochs': 7}


def test_two_things_of_one_name_need_the_role():
  chosen = {'partition': 'dirichlet', 'refine': ('ensemble',)}
  posterior = {'ensemble.posterior': 'dirichlet'}
  with pytest.raises(ValueError, match='may mean two things: say --partition'):
    Config(**chosen, settings={**posterior, 'dirichlet.alpha': 0.1})
  config = Config(
    **chosen, settings={**posterior, 'partition.dirichlet.alpha': 0.1}
  )
  assert values(config, 'partition')['alpha'] == 0.1
  assert values(config, 'refine.ensemble.posterior')['alpha'] == 1.0


def test_anybodys_own_gets_its_settings_by_what_follows_the_colon():
  config = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert values(config, 'client_parts') == {'factor': 0.25}
  # An argument that a run gives is no setting.
  with pytest.raises(
    ValueError, match=re.escape('--Shrink.num_rounds is unknown')
  ):
    Config(client_parts=(MINE,), settings={'Shrink.num_rounds': 3})


def test_a_member_of_a_family_has_the_familys_settings():
  config = Config(model='resnet14', settings={'resnet.normalization': 'group'})
  assert values(config, 'model') == {'normalization': 'group'}


@pytest.mark.parametrize(
  'settings, message',
  [
    (
      {'step.deal': 'ring'},
      '--step.deal is a setting of step, which is not chosen: leave it out, or '
      'set --partition=step.',
    ),
    (
      {'mlp.hidden_unit': 3},
      '--mlp.hidden_unit is unknown. Did you mean --mlp.hidden_units?',
    ),
    ({'mpl.hidden_units': 3}, "--mpl.hidden_units is unknown: no setting goes "
     "by it. Did you mean 'mlp'?"),
    ({'model.mlp.hidden_units': (0,)}, '--model.mlp.hidden_units=0 must be'),
    ({'start.mlp.hidden_units': (4,)}, '--start.mlp.hidden_units is unknown'),
    ({'hidden_units': (4,)}, '--hidden_units is unknown'),
  ],
)  # fmt: skip
def test_refused(settings, message):
  with pytest.raises(ValueError, match=f'^{re.escape(message)}'):
    Config(settings=settings)


def test_a_presets_settings_lie_idle_but_typed_ones_do_not():
  preset = {'partition': 'step', 'step.deal': 'ring', 'num_rounds': 3}
  behind = {**preset, 'partition': 'iid'}
  assert Config.of(behind) == Config(num_rounds=3)
  assert Config.of(preset).settings == {'step.deal': 'ring'}
  with pytest.raises(
    ValueError, match=re.escape('--step.deal is a setting of step')
  ):
    Config.of(behind, typed=['step.deal'])
  with pytest.raises(ValueError, match=re.escape('--step.del is unknown')):
    Config.of({**behind, 'step.del': 'ring'})


def test_a_later_shorter_key_takes_the_place_of_longer_ones():
  both = {'start': ('fine_tune',), 'refine': ('fine_tune',)}
  one = {'start.fine_tune.epochs': 50, 'refine.fine_tune.epochs': 10}
  config = Config.of({**both, **one, 'fine_tune.epochs': 1})
  assert config.settings == {'fine_tune.epochs': 1}
  again = Config.of({**both, **one}).replace(**{'fine_tune.epochs': 1})
  assert again == config
  # A field covers no setting of its name.
  small = {'refine': ('distil',), 'distil.batch_size': 7, 'batch_size': 9}
  assert Config.of(small).get('distil.batch_size') == 7
  assert Config.of(small).replace(batch_size=3).get('distil.batch_size') == 7


@dataclasses.dataclass(frozen=True)
class Tuned:
  """A stage with a role of its own, in both chains."""

  optimizer: Annotated[Any, Setting('By:', table=training.OPTIMIZERS)] = 'sgd'

  name: ClassVar[str] = 'tuned'
  statistics: ClassVar[tuple] = ()

  def __call__(self, state, reference, pooled, statistics, seed):
    return state, {}


def test_a_role_of_a_method_is_its_own_in_every_chain():
  tuned = f'{__name__}:Tuned'
  experiment = toys.experiment(
    start=(tuned,),
    server_step=(tuned,),
    client_optimizer='adam',
    **{
      'start.Tuned.optimizer': 'adam',
      'start.Tuned.optimizer.adam.beta_1': 0.5,
      'server_step.Tuned.optimizer.sgd.momentum': 0.25,
    },
  )
  (start,), (step,) = experiment.method.start, experiment.method.stages
  assert start.optimizer == training.Adam(beta_1=0.5)
  assert step.optimizer == training.SGD(0.25)
  assert experiment.config.get('client_optimizer.adam.beta_1') == 0.9


def test_what_a_method_gives_another_is_no_setting():
  refused = {'distil.optimizer': 'sgd'}
  students = {'refine': ('students',), 'students.students': ('C:swa',)}
  with pytest.raises(ValueError, match=r'--distil\.optimizer is unknown'):
    Config.of({**students, **refused}, typed=refused)


def test_a_stage_that_a_part_brings_has_its_settings():
  part = f'{__name__}:Follows'
  config = Config(client_parts=(part,), settings={'momentum.decay': 0.5})
  assert config.get('momentum.decay') == 0.5
  (stage,) = toys.experiment(
    client_parts=(part,), **{'momentum.decay': 0.5}
  ).method.stages
  assert stage.decay == 0.5


@dataclasses.dataclass(frozen=True)
class Follows(toys.Idle):
  """Needs a stage that has a setting."""

  name: ClassVar[str] = 'follows'
  needs: ClassVar[str | None] = 'momentum'


def test_anybodys_settings_lie_idle_too():
  values = {'pooling': 'nwa', 'Barycenter.power': 2}
  assert Config.of(values) == Config()
  with pytest.raises(ValueError, match='no setting goes by it'):
    Config.of(values, typed=['Barycenter.power'])
  with pytest.raises(ValueError, match="Did you mean 'distil'"):
    Config.of({'distill.epochs': 3})


def test_replaced_methods_leave_their_settings():
  config = Config(partition='step', settings={'step.deal': 'ring'})
  assert config.replace(num_rounds=2).settings == {'step.deal': 'ring'}
  assert config.replace(partition='iid').settings == {}
  mine = Config(client_parts=(MINE,), settings={'Shrink.factor': 0.25})
  assert mine.replace(client_parts=()) == Config()
