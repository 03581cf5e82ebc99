"""Tests of the tables from which a study continues."""

import shutil

from harness import made_runs
import pytest

from bfl_tf.config.config import Config
from bfl_tf.runs import study
from experiments.harness import study_table


def _run(tmp_path, seed=0, **flags):
  config = Config(num_rounds=1, seed=seed, **flags)
  place = f'runs/seed{seed}'
  name = 'task=a,pooling=nwa'
  return study.Point(config, tmp_path / place, place, name, 'rate=1')


@pytest.fixture
def path(tmp_path):
  """A table with a finished run, whose directory was removed, and a failure."""
  path, axes = tmp_path / 'runs.csv', {'pooling': 'nwa'}
  table = study_table.StudyTable(path)
  made_runs.finish(_run(tmp_path), 0.5, nll=1.25)
  failed = _run(tmp_path, 1)
  failed.failure_path.write_text('ValueError: no data')
  for run in (_run(tmp_path), failed, _run(tmp_path, 2)):
    table.record(run, axes)
  table.write()
  shutil.rmtree(tmp_path / 'runs')
  return path


def test_a_run_with_a_row_needs_no_directory(tmp_path, path):
  table = study_table.StudyTable(path)
  done, *others = (table.attached(_run(tmp_path, seed)) for seed in range(3))
  assert done.is_done and done.scores == {'accuracy': 0.5, 'nll': 1.25}
  # A failed run, and one that had not started.
  assert not any(run.is_done for run in others)
  before = path.read_text('utf-8')
  assert 'no data' in before
  table.record(done, {'pooling': 'nwa'})
  table.write()
  assert path.read_text('utf-8') == before


def test_a_row_of_other_flags_is_an_error_and_one_by_hand_is_not(
  tmp_path, path
):
  other = _run(tmp_path, batch_size=7)
  with pytest.raises(ValueError, match='other flags'):
    study_table.StudyTable(path).attached(other)
  # The order of --grid does not matter.
  row = '"pooling=nwa,task=a",rate=1,0,0.75'
  path.write_text(f'setting,values,seed,nll\n{row}\n')
  assert study_table.StudyTable(path).attached(other).scores == {'nll': 0.75}
