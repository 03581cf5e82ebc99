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
