"""Tests of runs with numeric labels, from a table to predictions."""

import json

import numpy as np
import pytest
import toys

import bfl_tf
from bfl_tf import analysis, data, models, plots, runs

RNG = np.random.default_rng(0)


def execute(folder, num_rows, **changes):
  """Runs a regression on a table of three sites; returns the directory."""
  rows = [['dose', 'site', 'time']]
  for number in range(num_rows):
    dose = RNG.normal()
    time = 10 + 3 * dose + 0.5 * RNG.normal()
    rows.append([f'{dose:.4f}', 'abc'[number % 3], f'{time:.4f}'])
  config = bfl_tf.Config(
    dataset=toys.write_table(folder / 'doses.csv', rows), label_column='time',
    client_column='site', num_workers=1, num_clients=3, model='logistic',
    likelihood='gaussian', client_learning_rate=0.05, validation_split=0.1,
    **changes,
  )  # fmt: skip
  runs.Run(config, folder / 'run', False, draw_plots=False).execute()
  return folder / 'run'


def test_a_run_learns_a_linear_function_and_its_noise(tmp_path):
  run = execute(
    tmp_path, 90, partition='natural', num_rounds=40, local_epochs=10
  )
  final = json.loads((run / 'summary.json').read_text('utf-8'))['final']
  assert final['rmse'] < 0.8
  assert 0.7 <= final['coverage_90'] <= 1
  assert {'crps', 'validation_nll'} <= final.keys()
  assert final['aleatoric'] == pytest.approx(0.25, rel=0.6)
  # Predictions are in the unit of the label.
  found = analysis.load(run).predict(np.float32([[0.0], [1.0]]))
  np.testing.assert_allclose(found.mean, [10, 13], atol=0.8)
  low, high = found.interval(0.9)
  np.testing.assert_allclose((low + high) / 2, found.mean, rtol=1e-6)
  np.testing.assert_allclose(
    (high - low) / found.scale, 2 * 1.644854, rtol=1e-6
  )
  total = found.aleatoric_uncertainty + found.epistemic_uncertainty
  np.testing.assert_allclose(np.square(found.scale), total, rtol=1e-6)
  names = {path.stem for path in plots.draw_run(run)}
  assert {'rmse', 'crps', 'predicted', 'pit', 'partition'} <= names


@pytest.mark.parametrize(
  ('y', 'what'),
  [
    (np.array([1.0, np.nan]), 'not finite'),
    (np.array(['a', 'b']), 'must be numbers'),
    (np.array([1e9, 1e9 + 1]), 'float32 rounds away'),
  ],
)
def test_invalid_numbers_are_rejected(y, what):
  x = np.ones([2, 1])
  with pytest.raises(ValueError, match=what):
    data.from_arrays('mine', x, y, x, y, is_numeric=True)


def with_groups(folder, **settings):
  return execute(
    folder, 300, num_rounds=2, local_epochs=20, num_server_examples=60,
    variant='deterministic', **settings,
  )  # fmt: skip


def last_row(run_dir):
  row = toys.table(run_dir / 'metrics.csv')[-1]
  return {name: float(value) for name, value in row.items() if value}


def test_an_ensemble_is_the_mixture_of_its_members(tmp_path):
  run_dir = with_groups(
    tmp_path,
    server_parts=['ensemble'],
    predictor='C',
    settings={'ensemble.num_samples': 2},
  )
  with (
    np.load(run_dir / 'members.npz') as members,
    np.load(run_dir / 'predictions.npz') as found,
  ):
    means = members['mean_C'].astype(np.float64)
    errors = members['squared_error_C'].mean(-1)
    np.testing.assert_allclose(found['mean'], means.mean(0), rtol=1e-5)
    np.testing.assert_allclose(
      found['epistemic_uncertainty'], means.var(0), rtol=1e-3, atol=1e-6
    )
  row = last_row(run_dir)
  assert row['best_rmse_C'] == pytest.approx(errors.min() ** 0.5, rel=1e-5)
  assert row['rmse_C'] == row['rmse']
  assert {'nll_A+C', 'crps_A+C+S'} <= row.keys()


def test_a_student_of_linear_teachers_predicts_their_mean(tmp_path):
  """The mean of linear models is linear, so that the student can reach it."""
  run_dir = with_groups(
    tmp_path,
    start=['fine_tune'],
    server_parts=['distil'],
    settings={
      'distil.teachers': 'C', 'distil.sharpening': 1.0,
      'distil.optimizer': 'sgd', 'distil.epochs': 300,
      'distil.learning_rate': 0.002, 'fine_tune.epochs': 3,
    },
  )  # fmt: skip
  row = last_row(run_dir)
  assert row['rmse'] == pytest.approx(row['rmse_C'], rel=5e-3)
  assert row['nll'] == pytest.approx(row['nll_C'], rel=2e-2)
  assert row['students_refused'] == 0


def test_the_last_layer_does_not_include_the_constant_output():
  model = models.build(
    'mlp', variant='deterministic', input_shape=(3,), num_classes=1,
    num_constants=1,
  )  # fmt: skip
  assert models.last_layer(model).output_shape == (None, 1)
