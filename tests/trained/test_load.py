"""What `load` refuses, with the fix; and the task that a run writes down."""

import json
import shutil

import numpy as np
import pytest
import toys

import bfl_tf
from bfl_tf import config as config_lib
from bfl_tf import datasets
from bfl_tf import runs as runs_lib

CONFIG = config_lib.Config(
  dataset='toys:blobs',
  model='logistic',
  num_clients=3,
  num_rounds=2,
  num_mc_samples=2,
  final_num_mc_samples=2,
)


def play(path):
  runs_lib.Run(CONFIG, path, False, toys.BUILT).play()


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('finished')
  play(path)
  return path


def remove(name):
  return lambda path: (path / name).unlink()


def remove_checkpoints(path):
  shutil.rmtree(path / 'checkpoints')


def break_last_checkpoint(path):
  (path / 'checkpoints/state-2.index').write_bytes(b'')


def break_task(path):
  (path / 'task.json').write_text('{"num_classes": 10}')


@pytest.mark.parametrize(
  'harm, what',
  [
    (remove('flags.txt'), 'holds no run: name the --output_dir of one'),
    (remove('summary.json'), 'holds an unfinished run: go on with it by'),
    (remove('task.json'), 'task.json cannot be read'),
    (break_task, 'task.json cannot be read'),
    (remove_checkpoints, 'no readable checkpoint of its last round'),
    (break_last_checkpoint, 'no readable checkpoint of its last round'),
  ],
)
def test_what_is_no_finished_run(finished, tmp_path, harm, what):
  path = tmp_path / 'run'
  shutil.copytree(finished, path)
  harm(path)
  with pytest.raises(ValueError, match=what) as raised:
    bfl_tf.load(path)
  (line,) = str(raised.value).splitlines()
  assert line.startswith(str(path))


def test_the_fix_of_a_lost_checkpoint_brings_the_run_back(finished, tmp_path):
  path = tmp_path / 'run'
  shutil.copytree(finished, path)
  break_last_checkpoint(path)
  (path / 'summary.json').unlink()
  play(path)
  again = bfl_tf.load(path)
  assert toys.same(again.weights, bfl_tf.load(finished).weights)


def test_a_task_is_read_to_the_last_bit():
  x = np.random.default_rng(0).normal(1 / 3, 1e-6, [9, 5]).astype(np.float32)
  dataset = datasets.from_arrays(
    'made', x, np.arange(9) % 3, x, np.arange(9) % 3
  )
  task = runs_lib.Task.of(dataset)
  again = runs_lib.Task.from_json(task.to_json())
  assert again == task
  assert toys.same(again.inputs[2:], (dataset.mean, dataset.std))
  assert json.loads(task.to_json())['num_classes'] == 3
