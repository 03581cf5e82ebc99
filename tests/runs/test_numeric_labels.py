"""Tests of runs with numeric labels, from a table to predictions."""

import csv
import json

import numpy as np
import pytest

import bfl_tf
from bfl_tf import analysis, data, plots, training

RNG = np.random.default_rng(0)


def write(path, num_rows=90):
  with open(path, 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['dose', 'site', 'time'])
    for number in range(num_rows):
      dose = RNG.normal()
      time = 10 + 3 * dose + 0.5 * RNG.normal()
      writer.writerow([f'{dose:.4f}', 'abc'[number % 3], f'{time:.4f}'])
  return str(path)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('numbers')
  config = bfl_tf.Config(
    dataset=write(folder / 'doses.csv'), label_column='time',
    client_column='site', partition='natural', num_clients=3, model='logistic',
    likelihood='gaussian', num_rounds=40, local_epochs=10,
    validation_split=0.1, client_learning_rate=0.05,
  )  # fmt: skip
  bfl_tf.run(config, folder / 'run')
  return folder / 'run'


def test_a_run_learns_the_line_and_its_noise(run):
  final = json.loads((run / 'summary.json').read_text())['final']
  assert final['rmse'] < 0.8
  assert 0.7 <= final['coverage_90'] <= 1
  assert {'crps', 'validation_nll'} <= final.keys()
  assert final['aleatoric'] == pytest.approx(0.25, rel=0.6)


def test_predictions_are_in_the_unit_of_the_label(run):
  trained = analysis.load(run)
  found = trained.predict(np.float32([[0.0], [1.0]]))
  np.testing.assert_allclose(found.mean, [10, 13], atol=0.8)
  low, high = found.interval(0.9)
  np.testing.assert_allclose((low + high) / 2, found.mean, rtol=1e-6)
  np.testing.assert_allclose(
    (high - low) / found.scale, 2 * 1.644854, rtol=1e-6
  )
  total = found.aleatoric_uncertainty + found.epistemic_uncertainty
  np.testing.assert_allclose(np.square(found.scale), total, rtol=1e-6)


def test_figures_of_a_run(run):
  paths = plots.draw_run(run)
  names = {path.stem for path in paths}
  assert {'rmse', 'crps', 'predicted', 'pit', 'partition'} <= names


def test_label_moments_do_not_depend_on_the_order_of_the_sites(run):
  path = run.parent / 'doses.csv'
  found = data.load(
    str(path), is_numeric=True, label_column='time', client_column='site'
  )
  mean, std = found.label_moments
  assert mean == pytest.approx(found.train.y.mean(dtype=np.float64))
  assert std == pytest.approx(found.train.y.std(dtype=np.float64))
  assert analysis.load(run).task.label_moments != (0, 1)


@pytest.mark.parametrize(
  ('y', 'what'),
  [
    (np.array([1.0, np.nan]), 'not finite'),
    (np.array(['a', 'b']), 'must be numbers'),
    (np.ones([2, 3]), 'must be numbers'),
    (np.array([1e9, 1e9 + 1]), 'float32 rounds away'),
  ],
)
def test_invalid_numbers_are_rejected(y, what):
  x = np.ones([2, 1])
  with pytest.raises(ValueError, match=what):
    data.from_arrays('mine', x, y, x, y, is_numeric=True)


def test_known_noise_needs_a_scale():
  for settings in ({'noise': 'known'}, {'noise_scale': 1.0}):
    with pytest.raises(ValueError, match='noise_scale'):
      training.Gaussian((0.0, 1.0), **settings)


def test_a_run_needs_two_different_numbers(tmp_path):
  x, y = np.arange(20.0)[:, np.newaxis], np.full(20, 7.0)
  np.savez(tmp_path / 'same.npz', x=x, y=y)
  config = bfl_tf.Config(
    dataset=str(tmp_path / 'same.npz'), likelihood='gaussian', num_clients=2
  )
  with pytest.raises(ValueError, match="only the label '7'"):
    bfl_tf.run(config, tmp_path / 'run')
  assert not (tmp_path / 'run').exists()
