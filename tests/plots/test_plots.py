"""Tests of figures of a small handmade run, and of errors."""

import pathlib

from matplotlib import pyplot
import numpy as np
import pytest
import toys

from bfl_tf import metrics, plots
from bfl_tf.plots import comparison

PROBS = np.array([[0.9, 0.1], [0.7, 0.3], [0.7, 0.3], [0.55, 0.45]])
LABELS = np.array([0, 0, 1, 1])
ACCURACY = ['0.1', '', '0.4', '', '0.7']


def make_run(path):
  path.mkdir()
  rng = np.random.default_rng(0)
  probs = rng.dirichlet(np.full(3, 0.5), 60)
  np.savez(
    path / 'predictions.npz',
    labels=rng.integers(0, 3, 60),
    probs=probs,
    normalized_entropy=metrics.normalized_entropy(probs),
    aleatoric_uncertainty=rng.random(60),
    epistemic_uncertainty=np.zeros(60),
  )
  scores = [[r, a, a, a, 2.0] for r, a in enumerate(ACCURACY)]
  header = ['round', 'accuracy', 'nll', 'ece', 'train_loss']
  toys.write_table(path / 'metrics.csv', [header, *scores])
  counts = [['client', 'class_0', 'class_1', 'class_2']]
  toys.write_table(
    path / 'partition.csv', [*counts, [0, 5, 0, 20], [1, 0, 1, 9]]
  )
  return path


@pytest.fixture
def run_dir(tmp_path):
  return make_run(tmp_path / 'ws')


def test_learning_curve_shows_the_evaluated_rounds(run_dir, tmp_path):
  runs = {'WS': run_dir, 'NWA': make_run(tmp_path / 'nwa')}
  (axes,) = plots.learning_curve(runs).axes
  assert [line.get_label() for line in axes.lines] == ['WS', 'NWA']
  for line in axes.lines:
    np.testing.assert_array_equal(line.get_xdata(), [0, 2, 4])
    np.testing.assert_array_equal(line.get_ydata(), [0.1, 0.4, 0.7])
  assert axes.get_ylabel() == 'Fraction of test examples'
  (axes,) = plots.learning_curve([*runs.values()]).axes
  assert [line.get_label() for line in axes.lines] == [*map(str, runs.values())]


def test_seeds_of_a_name_are_drawn_as_mean_and_band(run_dir, tmp_path):
  other = make_run(tmp_path / 'other')
  # The other run is longer; curves end with the shorter run.
  scores = [[0, 0.3], [2, 0.6], [4, 0.5], [6, 0.9]]
  toys.write_table(other / 'metrics.csv', [['round', 'accuracy'], *scores])
  (axes,) = plots.learning_curve({'WS': [run_dir, other]}).axes
  (line,), (band,) = axes.lines, axes.collections
  np.testing.assert_allclose(line.get_ydata(), [0.2, 0.5, 0.6])
  corners = {(x, round(y, 9)) for x, y in band.get_paths()[0].vertices}
  assert corners >= {(0, 0.1), (0, 0.3), (2, 0.4), (2, 0.6), (4, 0.5), (4, 0.7)}


def test_calibration_gap_above_a_threshold_matches_hand_computed_values():
  thresholds, gap = metrics.gap_above(PROBS, LABELS, 11)
  np.testing.assert_allclose(thresholds, np.arange(11) / 10)
  # Of all, 2 of 4 are right at mean confidence 0.7125; of three, 2 at 0.7667.
  np.testing.assert_allclose(gap[:6], 0.5 - 0.7125)
  np.testing.assert_allclose(gap[6:8], 2 / 3 - 2.3 / 3)
  np.testing.assert_allclose(gap[8:10], 0.1)
  assert np.isnan(gap[10])
  assert gap[0] == pytest.approx(-metrics.overconfidence(PROBS, LABELS))


def test_draw_run_writes_every_figure(run_dir):
  paths = plots.draw_run(run_dir)
  names = 'accuracy nll ece reliability confidence retention partition'
  assert [path.stem for path in paths] == names.split()
  assert sorted((run_dir / 'plots').iterdir()) == sorted(paths)
  for path in paths:
    assert pathlib.Path(path).read_bytes().startswith(b'\x89PNG')
  assert plots.draw_run(run_dir) == paths
  assert not pyplot.get_fignums()


def test_each_client_has_a_dot_at_its_personal_score(tmp_path):
  runs = []
  for seed, scores in enumerate(([0.5, 0.7], [0.9])):
    runs.append(tmp_path / f'{seed}')
    runs[-1].mkdir()
    rows = [['client', 'accuracy'], *enumerate(scores)]
    toys.write_table(runs[-1] / 'personal.csv', rows)
  figure = comparison.personal_scores({'fedavg': runs[:1], 'ditto': runs})
  dots, _, both, mean = figure.axes[0].lines
  assert [*dots.get_ydata()] == [0.5, 0.7]
  assert [*both.get_ydata()] == [0.5, 0.7, 0.9]
  assert mean.get_ydata() == pytest.approx([0.7, 0.7])
