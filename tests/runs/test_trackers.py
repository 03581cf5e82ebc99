"""Tests that trackers get each row once, also after interruptions."""

import json
import time

import fake
import pytest

from bfl_tf.federation import loop
from bfl_tf.runs import tables, trackers


def test_a_tracker_that_raises_does_not_end_the_run(tmp_path, monkeypatch):
  monkeypatch.setattr('importlib.util.find_spec', lambda name: name)
  monkeypatch.setitem(trackers._TRACKERS, 'wandb', lambda *args: 1 / 0)
  fake.execute(tmp_path, fake.CONFIG.replace(tracker=('wandb',)))
  assert (tmp_path / 'summary.json').exists()


@pytest.mark.process
@pytest.mark.parametrize('name', ['wandb', 'mlflow'])
def test_a_tracker_gets_each_row_once(tmp_path, monkeypatch, name):
  """The run is stopped between checkpoints, resumed and extended."""
  pytest.importorskip(name)
  monkeypatch.delenv('MLFLOW_TRACKING_URI', raising=False)
  config = fake.CONFIG.replace(tracker=(name,), checkpoint_every=3)
  longer = config.replace(num_rounds=config.num_rounds + 1)
  fake.stopped(tmp_path, loop, 'federated_round', 3, config=config)
  fake.execute(tmp_path, config)
  time.sleep(1)  # W&B names a session's folder by the second.
  fake.execute(tmp_path, longer)
  ((key, (run, sent)),) = json.loads(
    (tmp_path / 'trackers.json').read_text('utf-8')
  ).items()
  assert (key, sent) == (name, longer.num_rounds + 1)
  if name == 'wandb':
    # One run has three sessions; its log has a binary format of W&B.
    assert len(list(tmp_path.glob(f'wandb/offline-run-*-{run}'))) == 3
    return
  from mlflow import tracking

  client = tracking.MlflowClient(str(tmp_path / 'mlruns'))
  found = client.get_metric_history(run, 'nll')
  recorded = tables.read(tmp_path / 'metrics.csv')
  assert [(each.step, each.value) for each in found] == [
    (row['round'], row['nll']) for row in recorded
  ]
