"""Tests of run directories: errors and extended runs."""

import dataclasses
import importlib
import os
import sys

import fake
import numpy as np
import pytest

from bfl_tf import runs
from bfl_tf.federation import loop
from bfl_tf.runs import task

CONFIG = fake.CONFIG.replace(num_rounds=2)


def assert_rejected(path, config, match):
  with pytest.raises(ValueError, match=match):
    fake.run(path, config)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('finished')
  fake.execute(path, CONFIG)
  return path


@pytest.mark.parametrize(
  'changes, named',
  [
    ({'seed': 1}, '--seed'),
    ({'momentum.decay': 0.5}, '--momentum.decay=0.9'),
    ({'pooling': 'lp'}, '--pooling=auto'),
    ({'num_rounds': 1}, '--num_rounds'),
  ],
)
def test_changed_flags_are_rejected(finished, changes, named):
  assert_rejected(finished, CONFIG.replace(**changes), named)


def test_a_run_that_has_not_trained_is_replaced(tmp_path):
  fake.stopped(tmp_path, loop, 'federated_round', 1, config=CONFIG)
  other = CONFIG.replace(seed=1)
  (tmp_path / 'notes.txt').touch()
  fake.execute(tmp_path, other)
  assert runs.read_config(tmp_path) == other
  assert (tmp_path / 'notes.txt').exists()


def test_overwrite_replaces_a_finished_run(tmp_path):
  fake.execute(tmp_path, CONFIG)
  other = CONFIG.replace(seed=1, num_rounds=1)
  summary = fake.run(tmp_path, other, overwrite=True).execute()
  assert summary['rounds'] == 1
  # The same run is not run again.
  assert fake.run(tmp_path, other, overwrite=True).execute() == summary


SOURCE = """
import numpy as np

def data():
  y = np.arange(30) % 3
  return np.eye(3)[y], y, np.eye(3)[y], y
"""


def test_changed_user_supplied_code_is_rejected(tmp_path, monkeypatch):
  module, path = tmp_path / 'code_of_my_own.py', tmp_path / 'run'
  module.write_text(SOURCE)
  monkeypatch.syspath_prepend(tmp_path)
  config = CONFIG.replace(dataset='code_of_my_own:data')
  fake.execute(path, config)
  # The imported code is used until the module is reloaded.
  module.write_text(SOURCE.replace('% 3', '% 3 // 2'))
  fake.execute(path, config)
  importlib.reload(sys.modules[module.stem])
  assert_rejected(path, config, 'code_of_my_own')


@pytest.mark.parametrize('name', ['mean', 'label_moments'])
def test_changed_training_examples_are_rejected(tmp_path, name):
  fake.stopped(tmp_path, loop, 'federated_round', 2, config=CONFIG)
  path = tmp_path / 'task.json'
  theirs = task.read(path)
  first, *others = getattr(theirs, name)
  other = dataclasses.replace(theirs, **{name: (first + 1, *others)})
  path.write_text(other.to_json())
  assert_rejected(tmp_path, CONFIG, 'training examples')


def test_an_extended_run_equals_a_run_of_the_full_length(tmp_path):
  longer = CONFIG.replace(num_rounds=4)
  fake.execute(tmp_path / 'whole', longer)
  path = tmp_path / 'extended'
  fake.execute(path, CONFIG)
  before = fake.outcome(path)
  # These files are results of the shorter run's model.
  (path / 'conformal.json').touch()
  for name in ('plots', 'sites', 'uncertainty'):
    (path / name).mkdir()
    (path / name / 'scores.json').touch()
  fake.stopped(path, os, 'replace', 1, config=longer)
  # The extension has not begun yet.
  fake.execute(path, CONFIG)
  assert fake.outcome(path) == before
  fake.stopped(path, os, 'replace', 3, config=longer)
  kept = {each.name for each in path.iterdir()}
  gone = {'summary.json', 'predictions.npz', 'conformal.json', 'plots'}
  assert not kept & (gone | {'sites', 'uncertainty'})
  fake.execute(path, longer)
  assert fake.outcome(path) == fake.outcome(tmp_path / 'whole')


def by_rounds(labels, num_clients, num_rounds):
  return np.array_split(np.arange(len(labels)), num_clients)


@pytest.mark.parametrize(
  'flag, value', [('schedule', 'steps'), ('partition', f'{__name__}:by_rounds')]
)
def test_runs_that_depend_on_the_number_of_rounds_are_not_extended(
  tmp_path, flag, value
):
  config = CONFIG.replace(**{flag: value})
  fake.execute(tmp_path, config)
  assert_rejected(tmp_path, config.replace(num_rounds=4), flag)
