"""Tests of robust rules against a minority of malicious clients."""

import numpy as np
import pytest
import toys

from bfl_tf import statistics, weights
from bfl_tf.clients import attacks
from bfl_tf.server import pooling
from bfl_tf.server.pooling import robust

every_rule = pytest.mark.parametrize('name', robust.ROBUST)
NONE = np.zeros([0], np.float32)


def pooled(name, loc, scale, buffers=None, **settings):
  """Pools clients with these means and scales, `[num_clients, size]`."""
  rule = pooling.rule_of(name, **settings)
  weighed = []
  for client, (m, s) in enumerate(zip(np.float32(loc), np.float32(scale))):
    moving = NONE if buffers is None else np.float32(buffers[client])
    model = weights.Weights(m, s, m, moving)
    update = statistics.ClientUpdate(client, 1 + 10**client, model)
    weighed.append((update, 1.0))
  found = toys.pooled(rule, weighed, model)
  return found.model, found.report


@every_rule
def test_with_two_of_ten_malicious_the_result_is_within_honest_values(
  name, worst=-1e18
):
  rng = np.random.default_rng(0)
  loc, scale = rng.normal(size=(10, 50)), rng.uniform(0.5, 1, (10, 50))
  loc[3], scale[3] = worst, 1e18
  loc[7], scale[7] = 3e17, 1e-18
  good = [k for k in range(10) if k not in (3, 7)]
  model, info = pooled(name, loc, scale)
  for vector, of in zip(
    (model.loc, model.point, model.scale), (loc, loc, scale)
  ):
    of = np.float32(of[good])
    # The root of a mean of squares has a rounding error.
    assert np.all(vector >= of.min(axis=0) - 1e-6)
    assert np.all(vector <= of.max(axis=0) + 1e-6)
  rejected = 0.2 if name == 'multi_krum' else 0
  assert info['guarded_fraction'] == pytest.approx(rejected)
  naive, _ = pooled('nwa', loc, scale)
  assert np.abs(naive.loc).min() > 1e16


def test_median_and_trimmed_mean_match_hand_computed_values():
  loc, scale = [[1], [2], [9], [4], [5]], np.sqrt([[1], [2], [9], [4], [5]])
  median, _ = pooled('median', loc, scale)
  assert median.loc == 4
  np.testing.assert_allclose(median.scale**2, 4, rtol=1e-6)
  # One of five clients is removed at each end.
  trimmed, _ = pooled('trimmed_mean', loc, scale)
  np.testing.assert_allclose(trimmed.loc, 11 / 3, rtol=1e-6)
  np.testing.assert_allclose(trimmed.scale**2, 11 / 3, rtol=1e-6)
  whole, _ = pooled('trimmed_mean', loc, scale, trim=0.0)
  np.testing.assert_allclose(whole.loc, 21 / 5, rtol=1e-6)


def test_multi_krum_matches_a_hand_computed_value():
  # One of five may be malicious: scores use two neighbours, four clients are
  # averaged. With three, 0 (16 + 9 + 64) would be rejected, not 9 (25 + 1).
  model, info = pooled('multi_krum', [[0], [3], [4], [8], [9]], [[1]] * 5)
  assert model.loc == 15 / 4
  assert info['guarded_fraction'] == pytest.approx(0.2)


@every_rule
def test_honest_means_do_not_admit_malicious_scales_and_buffers(name):
  rng = np.random.default_rng(0)
  loc, scale = rng.normal(size=(10, 5)), rng.uniform(0.5, 1, (10, 5))
  buffers = rng.normal(size=(10, 5))
  # Two malicious clients agree.
  scale[[3, 7]], buffers[[2, 5]] = 1e3, 1e18
  model, _ = pooled(name, loc, scale, buffers)
  assert np.all(model.scale <= 1)
  assert np.all(np.abs(model.buffers) < 10)


def test_malicious_clients_that_agree_are_rejected():
  # Three of nine may be malicious: four neighbours, six averaged clients.
  loc = [[0], [1], [2], [3], [4], [5], [90], [90], [90]]
  model, _ = pooled('multi_krum', loc, [[1]] * 9, bad=1 / 3)
  assert model.loc == 2.5


def test_the_trimmed_fraction_is_not_rounded_down():
  # 0.29 * 100 is 28.999999999999996.
  loc = [[1e6]] * 29 + [[0]] * 71
  model, _ = pooled('trimmed_mean', loc, [[1]] * 100, trim=0.29)
  assert model.loc == 0


@pytest.mark.parametrize('name', ['trimmed_mean', 'multi_krum'])
def test_robust_rules_remove_as_many_clients_as_an_attack_controls(name):
  for size in range(5, 24):
    bad = attacks.malicious_clients(0, size, 0.2)
    loc = [[1e6 if client in bad else 1.0] for client in range(size)]
    model, _ = pooled(name, loc, [[1]] * size)
    assert model.loc == 1
  for few, left in ([[1], [7]], 4), ([[1], [7], [2]], 2):
    model, _ = pooled('trimmed_mean', few, [[1]] * len(few), trim=0.49)
    assert model.loc == left


def test_multi_krum_rejects_too_few_clients():
  # Five of ten clients replied; two of the five may be malicious.
  with pytest.raises(ValueError, match='at least 7 clients'):
    pooled('multi_krum', [[0], [1], [2], [50], [50]], [[1]] * 5, bad=0.4)
  experiment = toys.experiment(pooling='multi_krum', variant='flipout')
  state, infos = toys.execute(experiment, 2)
  assert np.all(np.isfinite(state.model.mean))
  assert infos[-1]['clients_pooled'] == experiment.config.num_clients
