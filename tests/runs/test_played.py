"""Tests of the files of a run with real training."""

import fake
import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import metrics, parts
from bfl_tf.config.config import Config
from bfl_tf.runs import tables

CONFIG = Config(
  dataset='toys:blobs', model='logistic', num_clients=4, num_workers=1,
  num_rounds=5, eval_every=2, num_eval_examples=20, validation_split=0.2,
  num_mc_samples=2, final_num_mc_samples=3,
)  # fmt: skip


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  path = tmp_path_factory.mktemp('finished')
  return path, fake.train(path, CONFIG)


def test_metrics_has_a_row_per_round_with_scores_of_evaluated_rounds(finished):
  path, summary = finished
  table = tables.read(path / 'metrics.csv')
  assert [row['round'] for row in table] == [*range(6)]
  # Every other round and the last are scored.
  *scored, last = [row for row in table if 'accuracy' in row]
  assert [row['round'] for row in (*scored, last)] == [0, 2, 4, 5]
  assert ['train_loss' in row for row in table] == [False] + [True] * 5
  assert table[0]['median_scale'] == pytest.approx(0.05)
  for row in scored:
    # Scores are of 20 examples; only the last ones are of all 60.
    accuracy = row['accuracy'] * 20
    assert accuracy == pytest.approx(round(accuracy), abs=1e-6)
    assert 0 <= row['validation_accuracy'] <= 1
  assert summary['final'].items() <= last.items()
  assert {'accuracy', 'nll', 'validation_nll'} <= summary['final'].keys()
  # The temperature was fitted on the validation examples.
  assert last['validation_tempered_nll'] <= last['validation_nll'] + 1e-3
  with np.load(path / 'predictions.npz') as kept:
    expected = metrics.tempered_scores(
      kept['probs'], kept['labels'], summary['temperature']
    )
  found = {name: last[name] for name in expected}
  assert found == pytest.approx(expected, rel=1e-4)


def test_tensorboard_has_the_same_values_as_metrics(finished):
  path, _ = finished
  events = {}
  for file in (path / 'tensorboard').iterdir():
    for event in tf.compat.v1.train.summary_iterator(str(file)):
      for value in event.summary.value:
        scalar = float(tf.make_ndarray(value.tensor))
        events[value.tag, event.step] = scalar
        assert value.metadata.plugin_data.plugin_name == 'scalars'
  for row in tables.read(path / 'metrics.csv'):
    for name in row.keys() & {'accuracy', 'train_loss'}:
      assert events[name, row['round']] == pytest.approx(row[name], rel=1e-6)


class Explode(parts.Server):
  """A part after which the model is finite, but its logits are not."""

  name = 'explode'

  def step(self, model, sums, slot, ctx):
    return parts.Outcome(model.replace_mean(np.full(model.mean.size, 3e38)))


def test_a_diverged_run_has_scores_nan_and_is_finished(tmp_path):
  config = CONFIG.replace(num_rounds=1, server_parts=(f'{__name__}:Explode',))
  final = fake.train(tmp_path, config)['final']
  assert {'accuracy', 'nll'} <= final.keys()
  assert np.all(np.isnan([*final.values()]))
  assert not (tmp_path / 'predictions.npz').exists()
  # The run is finished nevertheless.
  assert fake.train(tmp_path, config)['rounds'] == 1
