"""Tests of FedAdam, FedYogi and FedAdagrad."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, server, weights


def model(loc, point):
  vectors = loc, np.full(len(loc), 0.5), point, [7]
  return weights.Weights(*(np.asarray(v, np.float32) for v in vectors))


def step(stage, pooled, reference, slots):
  state = federation.State(0, pooled, slots, {})
  return stage(state, reference, pooled, {}, np.zeros(2, np.int32))


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
def test_two_rounds_match_hand_computed_values(optimizer, first, second):
  stage = server.Adaptive(optimizer, 0.1, 0.5, 0.5, 0.5)
  broadcast = model([1], [10])
  slots = {'adaptive': stage.init(broadcast)}
  # D = [2, -1], u = [1, -1/2].
  state, _ = step(stage, model([3], [9]), broadcast, slots)
  moved = 0.1 * np.array([1, -0.5]) / (np.sqrt(first) + 0.5)
  np.testing.assert_allclose(state.model.mean, [1, 10] + moved, rtol=1e-7)
  assert state.slots['adaptive']['second'].tolist() == first
  # D = [-1, 4] from the current model, u = [0, 1.75].
  pooled = model([4], [5])._replace(scale=np.float32([0.25]))
  reference = pooled.replace_mean(pooled.mean - np.float32([-1, 4]))
  state, info = step(stage, pooled, reference, state.slots)
  step_of_second = 0.1 * 1.75 / (second[1] ** 0.5 + 0.5)
  expected = reference.mean + [0, step_of_second]
  np.testing.assert_allclose(state.model.mean, expected, rtol=1e-7)
  assert state.slots['adaptive']['second'].tolist() == second
  assert info == {'server_step_norm': pytest.approx(step_of_second)}
  # The stage changes only means.
  assert toys.same(state.model.scale, pooled.scale)
