"""Tests of plots of points in a plane."""

import numpy as np

from experiments.harness import planes


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
