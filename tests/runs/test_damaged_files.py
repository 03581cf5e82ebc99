"""Tests that damaged files of a run are one-line errors."""

import json
import shutil

import fake
import pytest

from bfl_tf import analysis, files, run_files, runs
from bfl_tf.analysis import prediction_sets, risk
from bfl_tf.plots import recorded
from bfl_tf.runs import groups, task, trackers

READERS = {
  run_files.SUMMARY: run_files.read_summary,
  run_files.TASK: lambda path: task.read(path / run_files.TASK),
  run_files.CONFORMAL: prediction_sets.read,
  run_files.RISK: risk.read,
  run_files.TRACKERS: lambda path: trackers.Trackers([], path, {}),
  run_files.PARTITION: recorded.partition,
  run_files.FLAGS: runs.read_config,
  f'{run_files.SITES}/{run_files.SCORES}': groups.scores_of,
}


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('finished')
  fake.execute(path)
  sets = prediction_sets.PredictionSets((0.9,), {'': (0.5,)}, {'': 9}, 1, 'lac')
  prediction_sets.write(path, sets)
  risk.write(path, risk.Risk('yes', 0.1, 'platt', {'': (1.0, 0.0)}))
  (path / run_files.TRACKERS).write_text('{"wandb": ["a", 1]}')
  (path / run_files.SITES).mkdir()
  (path / run_files.SITES / run_files.SCORES).write_text('{"auroc": 0.5}')
  return path


@pytest.mark.parametrize('name', READERS)
def test_damaged_files_are_rejected(finished, tmp_path, name):
  path = shutil.copytree(finished, tmp_path / 'run')
  READERS[name](path)
  file = path / name
  text = file.read_text('utf-8')
  damaged = [text[: len(text) // 2], 'null', '[]', '\0']
  if name == run_files.FLAGS:
    damaged = ['', '\0' * 99, 'x' + text]
  if name in (run_files.TASK, run_files.CONFORMAL):
    damaged += ['{}', '{"unknown": 0}']
  for content in damaged:
    file.write_text(content)
    with pytest.raises(files.UnreadableError, match=file.name):
      READERS[name](path)
  if file.suffix != '.csv':
    file.unlink()
    file.mkdir()
    with pytest.raises(files.UnreadableError, match=file.name):
      READERS[name](path)


def test_the_task_of_another_run_is_rejected(finished, tmp_path):
  path = shutil.copytree(finished, tmp_path / 'run')
  file = path / run_files.TASK
  content = json.loads(file.read_text('utf-8'))
  content['mean'] = [value + 1 for value in content['mean']]
  file.write_text(json.dumps(content), 'utf-8')
  with pytest.raises(files.UnreadableError, match=run_files.TASK):
    analysis.load(path)


def test_a_truncated_partition_is_written_again_before_training(tmp_path):
  config = fake.CONFIG.replace(num_rounds=2)
  fake.execute(tmp_path, config)
  path = tmp_path / run_files.PARTITION
  text = path.read_text('utf-8')
  path.write_text(text[:-3])
  fake.execute(tmp_path, config.replace(num_rounds=3))
  assert path.read_text('utf-8') == text


def test_temporary_files_of_killed_processes_are_removed(finished):
  folder = finished / run_files.SITES / 'models' / 'north'
  folder.mkdir(parents=True)
  (folder / '.checkpoint.npz.1-2.tmp').touch()
  with runs.directory.RunDirectory(finished).locked():
    assert not [*folder.iterdir()]
