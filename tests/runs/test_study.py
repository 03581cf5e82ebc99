"""Tests of studies: resuming, extension and errors."""

import fake
import numpy as np
import pytest

import bfl_tf
from bfl_tf import runs
from bfl_tf.federation import evaluation
from bfl_tf.runs import task


@pytest.fixture(autouse=True)
def _faked(monkeypatch):
  def run(*arguments, **options):
    return original(*arguments, engine=fake.engine, **options)

  original = runs.Run
  monkeypatch.setattr(runs, 'Run', run)
  monkeypatch.setattr(evaluation, 'evaluate', fake.evaluate)


def test_a_sweep_runs_only_new_configs(tmp_path):
  first, second = fake.CONFIG, fake.CONFIG.replace(pooling='median')
  found = bfl_tf.sweep({'a/b': first}, tmp_path, seeds=(0, 1))
  assert {*found} == {'a/b'} and len(found['a/b']) == 2
  times = [(run / 'summary.json').stat().st_mtime_ns for run in found['a/b']]
  both = bfl_tf.sweep({'a/b': first, 'c': second}, tmp_path, seeds=(0, 1))
  assert both['a/b'] == found['a/b']
  assert times == [
    (run / 'summary.json').stat().st_mtime_ns for run in both['a/b']
  ]
  assert [runs.read_config(run).seed for run in both['c']] == [0, 1]
  with pytest.raises(ValueError, match='--pooling'):
    bfl_tf.sweep({'c': first}, tmp_path)


def test_an_invalid_config_in_a_sweep_is_rejected_before_any_run(tmp_path):
  wrong = fake.CONFIG.replace(num_clients=5000)
  with pytest.raises(ValueError, match='--num_clients'):
    bfl_tf.sweep({'a': fake.CONFIG, 'b': wrong}, tmp_path)
  assert not [*tmp_path.iterdir()]


def test_a_rewritten_data_file_is_read_again_for_another_run(tmp_path):
  file, y = tmp_path / 'data.npz', np.arange(30) % 3
  config = fake.CONFIG.replace(dataset=str(file), num_rounds=1)
  found = []
  for shift in (0, 1):
    x = np.eye(3)[y] + shift
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y)
    ((run,),) = bfl_tf.sweep({'a': config}, tmp_path / str(shift)).values()
    mean = task.read(run / 'task.json').mean
    assert mean == pytest.approx([1 / 3 + shift] * 3)
    found.append(run)
  # They are no seeds of one setting.
  names = runs.comparison.named(runs.groups.grouped(found))
  assert len(names) == 2 and all('--dataset=' in name for name in names)
  with pytest.raises(ValueError, match=r'data\.npz'):
    bfl_tf.sweep({'a': config}, tmp_path / '0')


def test_failed_runs_keep_their_row_and_reason(tmp_path):
  rules = {
    rule: fake.CONFIG.replace(pooling=rule) for rule in ('nwa', 'median')
  }
  found = bfl_tf.sweep(rules, tmp_path, seeds=(0, 1))
  done, failed = (runs.groups.grouped(paths)[0] for paths in found.values())
  failed.scores.clear()
  failed.failures[0] = 'it diverged'
  del done.scores[1]
  done.failures[1] = 'it was stopped'
  named = runs.comparison.named([done, failed])
  first, second = runs.comparison.rows(named, ['accuracy'])
  assert (first['n'], first['seeds']) == (1, 2)
  assert first['failure'] == 'it was stopped'
  assert (second['pooling'], second['mean']) == ('median', None)
  assert second['failure'] == 'it diverged'
  with pytest.raises(ValueError, match='--names'):
    runs.comparison.named([done, failed], ['pooling=nwa:A pooling=median:B'])
