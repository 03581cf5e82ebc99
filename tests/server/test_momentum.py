"""Tests of server momentum by hand."""

import numpy as np
import pytest

from bfl_tf import federation, server, weights


def model(loc, point, scale=0.5, buffers=(7,)):
  scale = np.full(len(loc), scale)
  vectors = loc, scale, point, buffers
  return weights.Weights(*(np.asarray(v, np.float32) for v in vectors))


def step(stage, pooled, reference, slots):
  state = federation.State(0, pooled, slots, {})
  return stage(state, reference, pooled, {}, np.zeros(2, np.int32))


def test_two_rounds_match_hand_computed_values():
  stage = server.Momentum(0.5)
  broadcast = model([1, 0], [10])
  slots = {'momentum': stage.init(broadcast)}
  assert slots['momentum'].dtype == np.float64

  # At rest: v = m - w, and w + v = m.
  pooled = model([3, -1], [14])
  state, info = step(stage, pooled, broadcast, slots)
  assert state.model.mean.tolist() == [3, -1, 14]
  assert state.slots['momentum'].tolist() == [2, -1, 4]
  assert info == {'velocity_norm': pytest.approx(21**0.5)}

  # v = [2, -1, 4] / 2 + [1, 1, -3] = [2, 0.5, -1]; w + v.
  pooled = model([4, 0], [11], scale=0.25, buffers=[9])
  state, info = step(stage, pooled, state.model, state.slots)
  assert state.model.loc.tolist() == [5, -0.5]
  assert state.model.point.tolist() == [13]
  assert state.slots['momentum'].tolist() == [2, 0.5, -1]
  assert info == {'velocity_norm': pytest.approx(5.25**0.5)}
  # The stage changes only means.
  assert state.model.scale.tolist() == [0.25, 0.25]
  assert state.model.buffers.tolist() == [9]


def test_dampened_momentum_matches_hand_computed_values():
  """The velocity is a running average; the first update counts fully."""
  stage = server.Momentum(0.75, 0.75)
  broadcast = model([1, 0], [10])
  slots = {'momentum': stage.init(broadcast)}
  state, _ = step(stage, model([3, -1], [14]), broadcast, slots)
  assert state.model.mean.tolist() == [3, -1, 14]
  assert state.slots['momentum'].tolist() == [2, -1, 4]

  # v = 3/4 [2, -1, 4] + 1/4 [4, 1, -8] = [2.5, -0.5, 1]; w + v.
  state, _ = step(stage, model([7, 0], [6]), state.model, state.slots)
  assert state.slots['momentum'].tolist() == [2.5, -0.5, 1]
  assert state.model.mean.tolist() == [5.5, -1.5, 15]
