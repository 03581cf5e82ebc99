"""Tests of plots of points in a plane."""

import numpy as np

from experiments.harness import planes


def test_the_simplex_marks_the_best_model_and_the_centre():
  accuracy = np.array([0.5, 0.9, 0.4])
  axes = planes.simplex(np.eye(3), accuracy).axes[0]
  (models,) = axes.collections
  corners = [[0, 0], [1, 0], [0.5, 3**0.5 / 2]]
  np.testing.assert_allclose(models.get_offsets(), corners, atol=1e-12)
  np.testing.assert_array_equal(models.get_array(), accuracy)
  _, best, centre = axes.lines
  np.testing.assert_allclose(best.get_xydata(), [[1, 0]], atol=1e-12)
  assert best.get_label() == 'Best: 0.900'
  np.testing.assert_allclose(centre.get_xydata(), [[0.5, 3**0.5 / 6]])


def test_points_of_a_class_have_the_same_style_in_all_panels():
  first = np.array([[0.0, 1], [2, 3], [4, 5]]), np.array([7, 0, 7])
  second = np.array([[6.0, 7]]), np.array([7])
  figure = planes.points({'one': first, 'two': second})
  one, two = figure.axes
  zero, seven = one.collections
  np.testing.assert_array_equal(zero.get_offsets(), [[2, 3]])
  np.testing.assert_array_equal(seven.get_offsets(), [[0, 1], [4, 5]])
  # There are seven colours: class 7 has that of class 0, with another marker.
  assert len(zero.get_paths()[0]) != len(seven.get_paths()[0])
  (again,) = two.collections
  assert len(again.get_paths()[0]) == len(seven.get_paths()[0])
  (legend,) = figure.legends
  texts = [text.get_text() for text in legend.get_texts()]
  assert texts == ['class 0', 'class 7']
  assert [axes.get_title() for axes in (one, two)] == ['one', 'two']


def test_samples_are_projected_onto_the_same_plane():
  rng = np.random.default_rng(0)
  direction = np.array([3.0, 4.0, 0.0]) / 5
  wide = np.outer(rng.normal(size=200), direction) * 10
  samples = {'a': wide, 'b': rng.normal(size=[100, 3])}
  points = planes.principal(samples)
  # The first component is the wide direction, with any sign.
  along = (wide - np.concatenate([*samples.values()]).mean(0)) @ direction
  assert abs(np.corrcoef(points['a'][:, 0], along)[0, 1]) > 0.999
  left, right = planes.plane(points).axes
  np.testing.assert_allclose(left.lines[0].get_xydata(), points['a'])
  assert right.get_title() == 'b: 100 draws'
  assert left.get_xlim() == right.get_xlim()
  assert [a.name for a in planes.surface(points).axes] == ['3d', '3d']
