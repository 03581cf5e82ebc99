"""Tests of site reports and intervals for numeric labels."""

import pathlib

import binaries
import fake
import numpy as np
import pytest
import toys

from bfl_tf import metrics
from bfl_tf.analysis import (
  model,
  prediction_sets,
  site_statistics,
)
from bfl_tf.config.config import Config


def prediction(size, seed=0, scale=0.5):
  """Returns predictions and labels; the true deviation is 1."""
  rng = np.random.default_rng(seed)
  mean, ones = rng.normal(size=size), np.ones(size)
  labels = mean + rng.normal(size=size)
  found = model.NumericPrediction(mean, scale * ones, scale**2 * ones, 0 * ones)
  return found, labels


def test_intervals_of_an_overconfident_model_reach_their_coverage_level():
  held, test = prediction(2000), prediction(20_000, seed=1)
  counts = site_statistics.score_counts(*held, prediction_sets.RESIDUAL)
  sets = prediction_sets.PredictionSets.of(
    {'': counts}, 1, prediction_sets.RESIDUAL
  )
  # The true quantiles are 1.645 and 1.960, in deviations twice as small.
  assert sets.half_widths() == pytest.approx([3.29, 3.92], rel=0.05)
  row = site_statistics.of(*test, sets).row(sets)
  assert row['coverage_0.9'] == pytest.approx(0.9, abs=0.015)
  assert row['width_0.9'] == pytest.approx(2 * sets.half_widths()[0] * 0.5)
  few = prediction_sets.PredictionSets.of(
    {'': metrics.residual_counts([0.1] * 8)[np.newaxis]},
    1,
    prediction_sets.RESIDUAL,
  )
  assert few.half_widths() == [np.inf, np.inf]


def test_the_sums_of_two_sites_give_the_scores_of_all_examples():
  predicted, labels = prediction(90)
  parts = [
    site_statistics.of(
      model.NumericPrediction(*(v[rows] for v in predicted)), labels[rows], None
    )
    for rows in (np.arange(30), np.arange(30, 90))
  ]
  evaluation = predicted.evaluation(labels)
  assert parts[0].merge(parts[1]).row(None) == pytest.approx(
    {'num_examples': 90}
    | {
      name: metrics.summarize(evaluation)[name]
      for name in ('rmse', 'nll', 'crps', 'pit_error')
    }
  )
  with pytest.raises(ValueError, match='counts'):
    parts[0].check(31)
  with pytest.raises(ValueError, match='loss'):
    parts[0]._replace(loss=np.array(np.nan)).check(30)


@pytest.fixture(scope='module')
def run_dir(tmp_path_factory):
  """A run on two sites whose labels are numbers."""
  folder = tmp_path_factory.mktemp('numbers')
  x, noise = np.random.default_rng(0).normal(size=[2, 200])
  is_b = np.arange(200) % 2
  y = 3 * x + is_b + 0.3 * noise
  rows = zip(x, np.where(is_b, 'b', 'a'), y)
  config = Config(
    dataset=toys.write_table(folder / 'data.csv', [['x', 'site', 'y'], *rows]),
    label_column='y', client_column='site', partition='natural',
    num_workers=1, num_clients=2, likelihood='gaussian', model='logistic',
    num_rounds=10, local_epochs=10, client_learning_rate=0.05,
    calibration_fraction=0.3,
  )  # fmt: skip
  fake.train(folder / 'run', config)
  return folder / 'run'


@pytest.mark.process
def test_the_binaries_report_and_predict_numeric_labels(run_dir, tmp_path):
  root = pathlib.Path(__file__).parents[1]
  flags = [f'--run={run_dir}', '--personalize_epochs=5']
  flags += ['--projection=wasserstein']
  ((code, _, error),) = binaries.drive('experiments.report', [flags], root)
  assert code == 0, error
  rows = toys.table(run_dir / 'sites/sites.csv')
  assert [row['site'] for row in rows] == ['a', 'b']
  assert all(0 < float(row['personalized_rmse']) < 1 for row in rows)
  assert 'data:image' in (run_dir / 'sites/report.html').read_text('utf-8')

  path = tmp_path / 'predictions.csv'
  flags = [f'--input={run_dir.parent / "data.csv"}', f'--output={path}']
  ((code, _, error),) = binaries.drive(
    'experiments.predict', [[f'--run={run_dir}', *flags]], root
  )
  assert code == 0, error
  first, *_ = toys.table(path)
  sets = prediction_sets.read(run_dir)
  half = sets.half_widths()[0] * float(first['standard_deviation'])
  assert float(first['guaranteed_low_0.9']) == pytest.approx(
    float(first['prediction']) - half, abs=1e-4
  )
