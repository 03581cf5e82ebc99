"""Figures of settings and of single models show what they are given."""

import csv

import numpy as np

from bfl_tf import plots

CONFIDENCE = np.array([[0.55, 0.95, 0.95], [0.55, 0.75, 0.95]], np.float32)
CORRECT = np.array([[0, 1, 1], [1, 0, 1]], bool)
CORNERS = np.eye(3)


def make_run(path, **arrays):
  path.mkdir()
  np.savez(path / 'members.npz', **arrays)
  return path


def make_curve(path, **columns):
  path.mkdir()
  with open(path / 'metrics.csv', 'w', newline='') as file:
    rows = csv.writer(file)
    rows.writerow(['round', *columns])
    rows.writerows(
      [r, *values] for r, values in enumerate(zip(*columns.values()))
    )
  return path


def heights(bars):
  return [bar.get_height() for bar in bars]


def test_member_confidence_shows_right_and_wrong(tmp_path):
  run = make_run(tmp_path / 'run', confidence_C=CONFIDENCE, correct_C=CORRECT)
  (axes,) = plots.member_confidence(run, ('C',), num_bins=5).axes
  right, wrong = axes.containers
  # Bins of 0.2: 0.55 is in the third, 0.75 in the fourth.
  np.testing.assert_allclose(heights(right), np.array([0, 0, 1, 0, 3]) / 6)
  np.testing.assert_allclose(heights(wrong), np.array([0, 0, 1, 1, 0]) / 6)
  assert axes.get_title() == '2 clients: mean accuracy 0.667'


def test_simplex_stars_the_best_and_crosses_the_centre():
  accuracy = np.array([0.5, 0.9, 0.4])
  axes = plots.simplex(CORNERS, accuracy).axes[0]
  (models,) = axes.collections
  corners = [[0, 0], [1, 0], [0.5, 3**0.5 / 2]]
  np.testing.assert_allclose(models.get_offsets(), corners, atol=1e-12)
  np.testing.assert_array_equal(models.get_array(), accuracy)
  _, best, centre = axes.lines
  np.testing.assert_allclose(best.get_xydata(), [[1, 0]], atol=1e-12)
  assert best.get_label() == 'Best: 0.900'
  np.testing.assert_allclose(centre.get_xydata(), [[0.5, 3**0.5 / 6]])


def test_points_of_a_class_look_alike_in_all_panels():
  first = np.array([[0.0, 1], [2, 3], [4, 5]]), np.array([7, 0, 7])
  second = np.array([[6.0, 7]]), np.array([7])
  figure = plots.points({'one': first, 'two': second})
  one, two = figure.axes
  zero, seven = one.collections
  np.testing.assert_array_equal(zero.get_offsets(), [[2, 3]])
  np.testing.assert_array_equal(seven.get_offsets(), [[0, 1], [4, 5]])
  # Seven colours: the eighth class has the first one's, and another marker.
  assert len(zero.get_paths()[0]) != len(seven.get_paths()[0])
  (again,) = two.collections
  assert len(again.get_paths()[0]) == len(seven.get_paths()[0])
  (legend,) = figure.legends
  texts = [text.get_text() for text in legend.get_texts()]
  assert texts == ['class 0', 'class 7']
  assert [axes.get_title() for axes in (one, two)] == ['one', 'two']


def test_learning_curve_of_a_metric_for_each_run(tmp_path):
  run = make_curve(
    tmp_path / 'run', accuracy=[0.1, 0.2], **{'accuracy_A+C': [0.3, 0.4]}
  )
  columns = {'FedAvg': 'accuracy', 'Ensemble': 'accuracy_A+C'}
  (axes,) = plots.learning_curve(dict.fromkeys(columns, run), columns).axes
  drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
  assert drawn == {'FedAvg': [0.1, 0.2], 'Ensemble': [0.3, 0.4]}
  assert axes.get_ylabel() == 'Accuracy (fraction of test examples)'
