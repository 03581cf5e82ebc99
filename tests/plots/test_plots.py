"""Tests of figures of a small handmade run, and of errors."""

import csv
import pathlib

from matplotlib import pyplot
import numpy as np
import pytest

from bfl_tf import metrics, plots
from bfl_tf.plots import comparison

PROBS = np.array([[0.9, 0.1], [0.7, 0.3], [0.7, 0.3], [0.55, 0.45]])
LABELS = np.array([0, 0, 1, 1])
ACCURACY = ['0.1', '', '0.4', '', '0.7']


def write_csv(path, rows):
  with open(path, 'w', newline='', encoding='utf-8') as file:
    csv.writer(file).writerows(rows)


def make_run(path):
  path.mkdir()
  rng = np.random.default_rng(0)
  probs = rng.dirichlet(np.full(3, 0.5), (4, 60))
  np.savez(
    path / 'predictions.npz',
    labels=rng.integers(0, 3, 60),
    probs=probs.mean(axis=0),
    normalized_entropy=metrics.normalized_entropy(probs),
    aleatoric_uncertainty=metrics.aleatoric_uncertainty(probs),
    epistemic_uncertainty=metrics.epistemic_uncertainty(probs),
  )
  scores = [[r, a, a, a, 2.0] for r, a in enumerate(ACCURACY)]
  header = ['round', 'accuracy', 'nll', 'ece', 'train_loss']
  write_csv(path / 'metrics.csv', [header, *scores])
  counts = [['client', 'class_0', 'class_1', 'class_2']]
  write_csv(path / 'partition.csv', [*counts, [0, 5, 0, 20], [1, 0, 1, 9]])
  return path


@pytest.fixture
def run_dir(tmp_path):
  return make_run(tmp_path / 'ws')


def heights(bars):
  return [bar.get_height() for bar in bars]


def recorded(run_dir):
  return np.load(run_dir / 'predictions.npz')


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
  write_csv(other / 'metrics.csv', [['round', 'accuracy'], *scores])
  (axes,) = plots.learning_curve({'WS': [run_dir, other]}).axes
  (line,), (band,) = axes.lines, axes.collections
  np.testing.assert_allclose(line.get_ydata(), [0.2, 0.5, 0.6])
  corners = {(x, round(y, 9)) for x, y in band.get_paths()[0].vertices}
  assert corners >= {(0, 0.1), (0, 0.3), (2, 0.4), (2, 0.6), (4, 0.5), (4, 0.7)}


def test_reliability_diagram_shows_the_bins(run_dir):
  (axes,) = plots.reliability_diagram(run_dir, num_bins=6).axes
  bins = metrics.reliability(
    recorded(run_dir)['probs'], recorded(run_dir)['labels'], 6
  )
  filled = bins.counts > 0
  tops, gaps = axes.containers
  np.testing.assert_allclose(heights(tops), bins.accuracy[filled])
  ends = [bar.get_y() + bar.get_height() for bar in gaps]
  np.testing.assert_allclose(ends, bins.confidence[filled])
  assert f'ECE {bins.expected_calibration_error:.4f}' in axes.get_title()


def test_calibration_gap_above_a_threshold_matches_hand_computed_values():
  curve = metrics.gap_above(PROBS, LABELS, 11)
  np.testing.assert_allclose(curve.thresholds, np.arange(11) / 10)
  assert curve.counts.tolist() == [4] * 6 + [3, 3, 1, 1, 0]
  # Of all, 2 of 4 are right at mean confidence 0.7125; of three, 2 at 0.7667.
  np.testing.assert_allclose(curve.gap[:6], 0.5 - 0.7125)
  np.testing.assert_allclose(curve.gap[6:8], 2 / 3 - 2.3 / 3)
  np.testing.assert_allclose(curve.gap[8:10], 0.1)
  assert np.isnan(curve.gap[10])
  assert curve.gap[0] == pytest.approx(-metrics.overconfidence(PROBS, LABELS))


def test_calibration_gap_by_confidence_and_above_a_threshold(run_dir):
  arrays = {**recorded(run_dir), 'probs': PROBS, 'labels': LABELS}
  np.savez(run_dir / 'predictions.npz', **arrays)
  (axes,) = plots.calibration_gap({'one': run_dir}, num_bins=10).axes
  _, line = axes.lines
  np.testing.assert_allclose(line.get_xdata(), [0.55, 0.7, 0.9])
  np.testing.assert_allclose(line.get_ydata(), [-0.55, -0.2, 0.1], atol=1e-12)
  (label,) = axes.get_legend().get_texts()
  assert label.get_text() == 'one (ECE 0.2625)'
  (axes,) = plots.calibration_above({'one': run_dir, 'two': run_dir}).axes
  assert len(axes.lines) == 3 and axes.get_xlim() == (0, 1)
  assert axes.lines[1].get_ydata()[0] == pytest.approx(-0.2125)


def test_draw_run_writes_every_figure(run_dir):
  paths = plots.draw_run(run_dir)
  names = 'accuracy nll ece reliability confidence retention partition'
  assert [path.stem for path in paths] == names.split()
  assert sorted((run_dir / 'plots').iterdir()) == sorted(paths)
  for path in paths:
    assert pathlib.Path(path).read_bytes().startswith(b'\x89PNG')
  assert plots.draw_run(run_dir) == paths
  assert not pyplot.get_fignums()


def test_many_settings_are_divided_over_figures_by_one_flag():
  grid = {
    f'pooling={rule} dirichlet.alpha={alpha}': (rule, alpha)
    for rule in ('nwa', 'ws')
    for alpha in (0.1, 0.3, 1, 3, 10)
  }
  parts = comparison.facets(grid)
  assert list(parts) == ['_pooling=nwa', '_pooling=ws']
  assert [len(part) for part in parts.values()] == [5, 5]
  assert len(comparison.facets(grid, ['dirichlet.alpha'])) == 5
  assert {k: v for part in parts.values() for k, v in part.items()} == grid
  for name in ('{}', 'batch_size={}'):
    names = {name.format(i): i for i in range(12)}
    assert [*map(len, comparison.facets(names).values())] == [8, 4]
  few = dict.fromkeys('abc')
  assert comparison.facets(few) == {'': few}


def test_each_client_has_a_dot_at_its_personal_score(tmp_path):
  runs = []
  for seed, scores in enumerate(([0.5, 0.7], [0.9])):
    runs.append(tmp_path / f'{seed}')
    runs[-1].mkdir()
    rows = [['client', 'accuracy'], *enumerate(scores)]
    write_csv(runs[-1] / 'personal.csv', rows)
  figure = comparison.personal_scores({'fedavg': runs[:1], 'ditto': runs})
  dots, _, both, mean = figure.axes[0].lines
  assert [*dots.get_ydata()] == [0.5, 0.7]
  assert [*both.get_ydata()] == [0.5, 0.7, 0.9]
  assert mean.get_ydata() == pytest.approx([0.7, 0.7])
