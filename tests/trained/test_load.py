"""What `load` refuses, with the fix; and the task that a run writes down."""

import json

import fake
import numpy as np
import pytest
import toys

import bfl_tf
from bfl_tf import datasets
from bfl_tf import runs as runs_lib


@pytest.mark.parametrize(
  'lost, what',
  [
    ('flags.txt', '--output_dir'),
    ('summary.json', 'unfinished'),
    ('checkpoint.npz', 'checkpoint'),
  ],
)
def test_what_is_no_finished_run(tmp_path, lost, what):
  fake.play(tmp_path)
  assert bfl_tf.load(tmp_path).config == fake.CONFIG
  (tmp_path / lost).unlink()
  with pytest.raises(ValueError, match=what):
    bfl_tf.load(tmp_path)


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
