"""Trackers get each row of a run once, whatever stops it."""

import json
import struct
import time

import fake
import pytest

from bfl_tf.federation import loop
from bfl_tf.runs import rows


def test_a_tracker_that_is_not_there(monkeypatch, tmp_path):
  monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
  with pytest.raises(ValueError, match=r"'\.\[mlflow\]'"):
    fake.play(tmp_path / 'run', fake.CONFIG.replace(tracker=('mlflow',)))
  assert not (tmp_path / 'run').exists()


@pytest.mark.process
@pytest.mark.parametrize('name', ['wandb', 'mlflow'])
def test_each_row_once(tmp_path, monkeypatch, name):
  """Stopped between sparse checkpoints, gone on, and extended."""
  pytest.importorskip(name)
  monkeypatch.delenv('MLFLOW_TRACKING_URI', raising=False)
  config = fake.CONFIG.replace(tracker=(name,), checkpoint_every=3)
  longer = config.replace(num_rounds=config.num_rounds + 1)
  fake.stopped(tmp_path, loop, 'federated_round', 3, config=config)
  fake.play(tmp_path, config)
  time.sleep(1)  # W&B names a session's folder by the second.
  fake.play(tmp_path, longer)
  ((key, (run, sent)),) = json.loads(
    (tmp_path / 'trackers.json').read_text()
  ).items()
  assert (key, sent) == (name, longer.num_rounds + 1)
  found = {'wandb': _wandb, 'mlflow': _mlflow}[name](tmp_path, run)
  recorded = rows.read(tmp_path / 'metrics.csv')
  assert found == [(row['round'], row['nll']) for row in recorded]


def _mlflow(path, run):
  from mlflow import tracking

  client = tracking.MlflowClient(str(path / 'mlruns'))
  history = client.get_metric_history(run, 'nll')
  return [(each.step, each.value) for each in history]


def _wandb(path, run):
  import wandb
  from wandb.proto import wandb_internal_pb2 as records

  # Its own process may still be writing.
  wandb.teardown()
  found = []
  for file in sorted(path.glob(f'wandb/offline-run-*-{run}/*.wandb')):
    for data in _logged(file.read_bytes()):
      history = records.Record.FromString(data).history
      of = {each.nested_key[0]: each.value_json for each in history.item}
      if of:
        found.append((history.step.num, float(of['nll'])))
  return found


def _logged(data):
  """Yields the records of a log of LevelDB's, in blocks of 32 KiB."""
  at, whole = 7, b''
  while len(data) - at > 7:
    if -at % 32768 < 7:  # No room for a head: padding.
      at += -at % 32768
    _, size, kind = struct.unpack_from('<IHB', data, at)
    whole, at = whole + data[at + 7 : at + 7 + size], at + 7 + size
    if kind in (1, 4):  # Whole, or its last piece.
      yield whole
      whole = b''
