"""Tests of run directories: errors and extended runs."""

import importlib
import os
import sys

import fake
import filelock
import numpy as np
import pytest

from bfl_tf import runs
from bfl_tf.federation import loop
from bfl_tf.runs import directory, task

CONFIG = fake.CONFIG.replace(num_rounds=2)


def refused(path, config, match):
  with pytest.raises(ValueError, match=match):
    fake.run(path, config)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('finished')
  fake.play(path, CONFIG)
  return path


def test_an_empty_directory_will_do(tmp_path):
  directory.RunDirectory(tmp_path).check(CONFIG)
  directory.RunDirectory(tmp_path / 'new').check(CONFIG)
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
  'name, match',
  [
    ('file', 'output_dir'),
    ('flags.txt', r'flags\.txt'),
    ('site.json', 'output_dir'),
  ],
)
def test_what_holds_no_run(tmp_path, name, match):
  (tmp_path / name).touch()
  if name == 'site.json':
    (tmp_path / 'flags.txt').touch()
  if name == 'file':
    refused(tmp_path / name, CONFIG, match)
  refused(tmp_path, CONFIG, match)


def test_what_cannot_be_written(tmp_path, monkeypatch):
  monkeypatch.setattr(os, 'access', lambda path, mode: mode != os.W_OK)
  refused(tmp_path, CONFIG, 'output_dir')


def test_what_is_refused_leaves_nothing(tmp_path):
  refused(tmp_path, CONFIG.replace(num_clients=999), 'num_clients')
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
  'changes, named',
  [
    ({'seed': 1}, '--seed'),
    ({'momentum.decay': 0.5}, '--momentum.decay=0.9'),
    ({'pooling': 'lp'}, '--pooling=nwa. Choose'),
    ({'num_rounds': 1}, '--num_rounds'),
  ],
)
def test_a_changed_flag_is_another_run(finished, changes, named):
  refused(finished, CONFIG.replace(**changes), named)


def test_a_run_that_has_not_trained_is_replaced(tmp_path):
  fake.stopped(tmp_path, loop, 'federated_round', 1, config=CONFIG)
  other = CONFIG.replace(seed=1)
  (tmp_path / 'notes.txt').touch()
  fake.play(tmp_path, other)
  assert runs.read_config(tmp_path) == other
  assert (tmp_path / 'notes.txt').exists()


def test_overwrite_replaces_a_finished_run(tmp_path):
  fake.play(tmp_path, CONFIG)
  other = CONFIG.replace(seed=1, num_rounds=1)
  summary = fake.run(tmp_path, other, overwrite=True).play()
  assert summary['rounds'] == 1
  # The same run is not run again.
  again = fake.run(tmp_path, other, overwrite=True).play()
  assert again == summary


def test_flags_of_the_machine_may_change(finished):
  directory.RunDirectory(finished).check(CONFIG.replace(num_workers=7))


def npz(path, shift=0.0):
  y = np.arange(30) % 3
  x = np.eye(3)[y] + shift
  np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)


def test_other_data_are_another_run(tmp_path):
  file, path = tmp_path / 'data.npz', tmp_path / 'run'
  npz(file)
  config = CONFIG.replace(dataset=str(file))
  fake.play(path, config)
  fake.play(path, config)
  npz(file, shift=1.0)
  refused(path, config, r'data\.npz')


SOURCE = """
import numpy as np

def data():
  y = np.arange(30) % 3
  return np.eye(3)[y], y, np.eye(3)[y], y
"""


def test_other_code_is_another_run(tmp_path, monkeypatch):
  module, path = tmp_path / 'code_of_my_own.py', tmp_path / 'run'
  module.write_text(SOURCE)
  monkeypatch.syspath_prepend(tmp_path)
  config = CONFIG.replace(dataset='code_of_my_own:data')
  fake.play(path, config)
  fake.play(path, config)
  # The imported code is used until the module is reloaded.
  module.write_text(SOURCE.replace('% 3', '% 3 // 2'))
  fake.play(path, config)
  importlib.reload(sys.modules[module.stem])
  refused(path, config, 'code_of_my_own')


def test_other_examples_of_one_name_are_another_run(tmp_path):
  fake.stopped(tmp_path, loop, 'federated_round', 2, config=CONFIG)
  path = tmp_path / 'task.json'
  theirs = task.read(path)
  other = task.Task.from_json(
    theirs.to_json().replace(str(theirs.mean[0]), str(theirs.mean[0] + 1))
  )
  path.write_text(other.to_json())
  refused(tmp_path, CONFIG, 'training examples')


def test_one_process_a_run(tmp_path):
  with filelock.FileLock(tmp_path / '.lock'):
    with pytest.raises(runs.BusyError, match='output_dir'):
      fake.play(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ['.lock']
  assert fake.play(tmp_path, CONFIG)['rounds'] == 2


def test_two_that_begin_together(tmp_path, monkeypatch):
  monkeypatch.setattr('bfl_tf.federation.evaluation.evaluate', fake.evaluate)
  path = tmp_path / 'run'
  first, same, other = (
    fake.run(path, CONFIG.replace(seed=seed)) for seed in (0, 0, 1)
  )
  summary = first.play()
  assert same.play() == summary
  with pytest.raises(ValueError, match='--seed'):
    other.play()


def test_a_longer_run_is_the_longer_run(tmp_path):
  longer = CONFIG.replace(num_rounds=4)
  fake.play(tmp_path / 'whole', longer)
  path = tmp_path / 'extended'
  fake.play(path, CONFIG)
  before = fake.outcome(path)
  # These files are results of the shorter run's model.
  (path / 'conformal.json').touch()
  for name in ('plots', 'sites', 'uncertainty'):
    (path / name).mkdir()
    (path / name / 'scores.json').touch()
  fake.stopped(path, os, 'replace', 1, config=longer)
  # The extension has not begun yet.
  fake.play(path, CONFIG)
  assert fake.outcome(path) == before
  fake.stopped(path, os, 'replace', 2, config=longer)
  kept = {each.name for each in path.iterdir()}
  gone = {'summary.json', 'predictions.npz', 'conformal.json', 'plots'}
  assert not kept & (gone | {'sites', 'uncertainty'})
  fake.play(path, longer)
  assert fake.outcome(path) == fake.outcome(tmp_path / 'whole')
  refused(path, CONFIG, '--num_rounds')


def by_rounds(labels, num_clients, num_rounds):
  return np.array_split(np.arange(len(labels)), num_clients)


@pytest.mark.parametrize(
  'changes',
  [
    {'learning_rate_schedule': 'steps'},
    {'partition': f'{__name__}:by_rounds'},
  ],
)
def test_what_depends_on_all_rounds_is_not_extended(tmp_path, changes):
  config = CONFIG.replace(**changes)
  fake.play(tmp_path, config)
  (name,) = changes
  refused(tmp_path, config.replace(num_rounds=4), name)
  assert fake.play(tmp_path, config)['rounds'] == 2
