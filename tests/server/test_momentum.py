"""Tests of server momentum, FedAdam, FedYogi and FedAdagrad by hand."""

import numpy as np
import pytest
import toys
from toys import model, stepped

from bfl_tf.methods import fedadam, fedavgm


def test_two_rounds_match_hand_computed_values():
  part = fedavgm.Momentum(0.5)
  broadcast = model([1, 0], 0.5, [10], [7])
  slot = part.slot(broadcast)
  assert slot.dtype == np.float64

  # At rest: v = m - w, and w + v = m.
  pooled = model([3, -1], 0.5, [14], [7])
  found = stepped(part, pooled, broadcast, slot)
  assert found.model.mean.tolist() == [3, -1, 14]
  assert found.slot.tolist() == [2, -1, 4]
  assert found.report == {'velocity_norm': pytest.approx(21**0.5)}

  # v = [2, -1, 4] / 2 + [1, 1, -3] = [2, 0.5, -1]; w + v.
  pooled = model([4, 0], 0.25, [11], [9])
  found = stepped(part, pooled, found.model, found.slot)
  assert found.model.loc.tolist() == [5, -0.5]
  assert found.model.point.tolist() == [13]
  assert found.slot.tolist() == [2, 0.5, -1]
  assert found.report == {'velocity_norm': pytest.approx(5.25**0.5)}
  # The part changes only means.
  assert found.model.scale.tolist() == [0.25, 0.25]
  assert found.model.buffers.tolist() == [9]


def test_dampened_momentum_matches_hand_computed_values():
  """The velocity is a running average; the first update counts fully."""
  part = fedavgm.Momentum(0.75, 0.75)
  broadcast = model([1, 0], 0.5, [10], [7])
  slot = part.slot(broadcast)
  found = stepped(part, model([3, -1], 0.5, [14], [7]), broadcast, slot)
  assert found.model.mean.tolist() == [3, -1, 14]
  assert found.slot.tolist() == [2, -1, 4]

  # v = 3/4 [2, -1, 4] + 1/4 [4, 1, -8] = [2.5, -0.5, 1]; w + v.
  pooled = model([7, 0], 0.5, [6], [7])
  found = stepped(part, pooled, found.model, found.slot)
  assert found.slot.tolist() == [2.5, -0.5, 1]
  assert found.model.mean.tolist() == [5.5, -1.5, 15]


@pytest.mark.parametrize(
  'optimizer, first, second',
  [
    # 1/4 + 4 and 1/4 + 1; then + 1 and + 16.
    ('adagrad', [4.25, 1.25], [5.25, 17.25]),
    # 1/4 + 4/2 and 1/4 + 1/2; then 2.25 - 1/2 and 0.75 + 16/2.
    ('yogi', [2.25, 0.75], [1.75, 8.75]),
    # 1/8 + 4/2 and 1/8 + 1/2; then half of each plus 1/2 and 16/2.
    ('adam', [2.125, 0.625], [1.5625, 8.3125]),
  ],
)
def test_two_rounds_of_an_optimizer_match_hand_computed_values(
  optimizer, first, second
):
  part = fedadam.AdaptiveOptimizer(optimizer, 0.1, 0.5, 0.5, 0.5)
  broadcast = model([1], 0.5, [10], [7])
  slot = part.slot(broadcast)
  # D = [2, -1], u = [1, -1/2].
  found = stepped(part, model([3], 0.5, [9], [7]), broadcast, slot)
  moved = 0.1 * np.array([1, -0.5]) / (np.sqrt(first) + 0.5)
  np.testing.assert_allclose(found.model.mean, [1, 10] + moved, rtol=1e-7)
  assert found.slot['second'].tolist() == first
  # D = [-1, 4] from the current model, u = [0, 1.75].
  pooled = model([4], 0.5, [5], [7])._replace(scale=np.float32([0.25]))
  reference = pooled.replace_mean(pooled.mean - np.float32([-1, 4]))
  found = stepped(part, pooled, reference, found.slot)
  step_of_second = 0.1 * 1.75 / (second[1] ** 0.5 + 0.5)
  expected = reference.mean + [0, step_of_second]
  np.testing.assert_allclose(found.model.mean, expected, rtol=1e-7)
  assert found.slot['second'].tolist() == second
  assert found.report == {'server_step_norm': pytest.approx(step_of_second)}
  # The part changes only means.
  assert toys.same(found.model.scale, pooled.scale)
