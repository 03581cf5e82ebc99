"""Tests of the projection around the broadcast and around zero."""

import numpy as np
import pytest
import toys

from bfl_tf import clients


@pytest.mark.parametrize(
  'settings, mean, expected',
  [
    # The distance from (1, 1) to (4, 5) is 5; a radius of 2.5 is half of it.
    ((2.5,), [4.0, 5.0], [2.5, 3.0]),
    ((5.0,), [4.0, 5.0], [4.0, 5.0]),
    ((2.5, 'model'), [3.0, 4.0], [1.5, 2.0]),
  ],
)
def test_projected_weights_equal_those_computed_by_hand(
  settings, mean, expected
):
  # The first three of five steps are inside the ball.
  path = [np.ones(2)] * 3 + [mean] * 2
  part = clients.Projection(*settings)
  moved, _, report = toys.visited(part, [1.0, 1.0], path)
  assert moved.tolist() == expected
  fraction = 0.4 if mean != expected else 0
  assert report['hit_fraction'] == pytest.approx(fraction)
