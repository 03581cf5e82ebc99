"""Tests of configs: errors, flags and flag files."""

import pytest

from bfl_tf import runs, version
from bfl_tf.config import config as config_lib
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
  config = config_lib.Config.of(changes)
  path = tmp_path / 'flags.txt'
  path.write_text('\n'.join(run_config.flag_lines(config)))
  fields = config_lib.read_flagfile(path)
  known = {*config_lib.FIELDS, *dict(config.selection.lines())}
  # Without --data_seed, the file is that of earlier releases.
  assert known - {*fields} == (set() if changes else {'data_seed'})
  assert config_lib.Config.of(fields, typed=config.settings) == config
  assert runs.read_config(tmp_path) == config


def test_flags_of_another_format_or_unknown_flags_are_rejected(tmp_path):
  path = tmp_path / 'flags.txt'
  # A later version may have the same format and other flags.
  path.write_text(f'# bfl_tf 9.9.9, format {version.FORMAT}\n--seed=3\n')
  assert runs.read_config(tmp_path) == config_lib.Config(seed=3)
  path.write_text('# bfl_tf 0.0.1\n--seed=3\n')
  with pytest.raises(ValueError, match=r'another format \(bfl_tf 0\.0\.1\)'):
    runs.read_config(tmp_path)
  path.write_text(f'{run_config.VERSION}\n--seed=3\n--sead=4\n')
  with pytest.raises(ValueError, match='--sead is unknown'):
    runs.read_config(tmp_path)


def test_a_flagfile_can_be_read_and_changed_in_python(tmp_path):
  path = tmp_path / 'a.flags'
  path.write_text('--pooling=lp\n--noaugment\n--proximal.weight=0.1\n')
  config = config_lib.Config.from_flagfile(
    path, num_rounds=3, settings={'mlp.hidden_units': (4,)}
  )
  assert (config.pooling, config.num_rounds) == ('lp', 3)
  assert config.get('mlp.hidden_units') == (4,)
  # A setting of another method is ignored in a file, but an error if typed.
  for typed in ({'settings': {'proximal.weight': 1}}, {'proximal.weight': 1}):
    with pytest.raises(ValueError, match='--proximal'):
      config_lib.Config.from_flagfile(path, **typed)
    with pytest.raises(ValueError, match='--proximal'):
      config.replace(**typed)
  with pytest.raises(ValueError, match='poling'):
    config_lib.Config.from_flagfile(path, poling='ws')
  for text, named in (('--jobs=2', 'jobs'), ('pooling=ws', 'pooling=ws')):
    path.write_text(text)
    with pytest.raises(ValueError, match=f'a.flags.*{named}'):
      config_lib.Config.from_flagfile(path)


def test_an_installed_preset_is_found_by_its_name(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  name = 'configs/quickstart.flags'
  assert config_lib.Config.from_flagfile(name).dataset == 'digits'
  own = tmp_path / name
  own.parent.mkdir()
  own.write_text('--dataset=mnist\n')
  assert config_lib.Config.from_flagfile(name).dataset == 'mnist'
  with pytest.raises(ValueError, match=name):
    config_lib.Config.from_flagfile('quickstart.flags')
