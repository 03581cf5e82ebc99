"""Tests of configs: flags, flag files, methods and their settings."""

import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest
import toys

from bfl_tf import runs, version
from bfl_tf.config import config as config_lib
from bfl_tf.config import selection
from bfl_tf.config.catalog import known_methods
from bfl_tf.config.config import Config
from bfl_tf.declare import component
from bfl_tf.runs import run_config

CHANGED = {
  'dataset': 'some where/my file.npz', 'train_split': 'train[:10%]',
  'augment': True, 'mlp.hidden_units': (200, 100),
  'schedule': 'steps', 'steps.decay_at': (),
  'client_parts': ('proximal', 'toys:Counter'), 'client_learning_rate': 1e-05,
  'flipout.prior_scale': 1 / 3, 'flipout.update_prior': True, 'seed': 2**31 - 1,
  'data_seed': 0, 'start': ('fine_tune',),
  'server_parts': ('fine_tune', 'ensemble'), 'fine_tune.epochs': 3,
  'ensemble.posterior': 'dirichlet_weights',
}  # fmt: skip


@pytest.mark.parametrize('changes', [{}, CHANGED], ids=['defaults', 'changed'])
def test_flags_txt_is_a_flagfile_of_the_same_config(tmp_path, changes):
  config = Config.of(changes)
  path = tmp_path / 'flags.txt'
  path.write_text('\n'.join(run_config.flag_lines(config)))
  fields = config_lib.read_flagfile(path)
  known = {*config_lib.FIELDS, *dict(config.selection.lines())}
  # Without --data_seed, the file is that of earlier releases.
  assert known - {*fields} == (set() if changes else {'data_seed'})
  assert Config.of(fields, typed=config.settings) == config
  assert runs.read_config(tmp_path) == config


def test_flags_of_another_format_or_unknown_flags_are_rejected(tmp_path):
  path = tmp_path / 'flags.txt'
  # A later version may have the same format and other flags.
  path.write_text(f'# bfl_tf 9.9.9, format {version.FORMAT}\n--seed=3\n')
  assert runs.read_config(tmp_path) == Config(seed=3)
  path.write_text('# bfl_tf 0.0.1\n--seed=3\n')
  with pytest.raises(ValueError, match=r'another format \(bfl_tf 0\.0\.1\)'):
    runs.read_config(tmp_path)
  path.write_text(f'{run_config.VERSION}\n--seed=3\n--sead=4\n')
  with pytest.raises(ValueError, match='--sead is unknown'):
    runs.read_config(tmp_path)


def test_a_flagfile_can_be_read_and_changed_in_python(tmp_path):
  path = tmp_path / 'a.flags'
  path.write_text('--pooling=lp\n--noaugment\n--proximal.weight=0.1\n')
  config = Config.from_flagfile(
    path, num_rounds=3, settings={'mlp.hidden_units': (4,)}
  )
  assert (config.pooling, config.num_rounds) == ('lp', 3)
  assert config.get('mlp.hidden_units') == (4,)
  # A setting of another method is ignored in a file, but an error if typed.
  for typed in ({'settings': {'proximal.weight': 1}}, {'proximal.weight': 1}):
    with pytest.raises(ValueError, match='--proximal'):
      Config.from_flagfile(path, **typed)
    with pytest.raises(ValueError, match='--proximal'):
      config.replace(**typed)
  with pytest.raises(ValueError, match='poling'):
    Config.from_flagfile(path, poling='ws')
  for text, named in (('--jobs=2', 'jobs'), ('pooling=ws', 'pooling=ws')):
    path.write_text(text)
    with pytest.raises(ValueError, match=f'a.flags.*{named}'):
      Config.from_flagfile(path)


def test_an_installed_preset_is_found_by_its_name(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  name = 'configs/quickstart.flags'
  assert Config.from_flagfile(name).dataset == 'digits'
  own = tmp_path / name
  own.parent.mkdir()
  own.write_text('--dataset=mnist\n')
  assert Config.from_flagfile(name).dataset == 'mnist'
  with pytest.raises(ValueError, match=name):
    Config.from_flagfile('quickstart.flags')


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
