"""Tests of SWAG against moments of the weights along the training."""

import numpy as np
import pytest
import toys

from bfl_tf.federation import facts
from bfl_tf.methods import swag

PATH = np.random.default_rng(0).normal(size=[10, 15]).cumsum(0)
VISITED = PATH[1::2]


def fitted(rank, path=PATH, **settings):
  part = swag.Swag(period=2, rank=rank, **settings)
  return toys.visited(part, np.ones(15), path)[1:]


def deviations(visited):
  """Returns deviations from the running mean, which includes each point."""
  counts = np.arange(1, len(visited) + 1)[:, np.newaxis]
  return visited - np.cumsum(visited, 0) / counts


def test_rank_0_gives_the_mean_and_variance_of_the_visited_weights():
  model, report = fitted(0)
  # Without the scale, the part is SWA.
  alone, nothing = fitted(0, fits_scale=False)
  assert toys.same(alone.mean, model.mean) and nothing == {}
  np.testing.assert_allclose(model.loc, VISITED.mean(0), atol=1e-6)
  np.testing.assert_allclose(model.scale, VISITED.std(0), rtol=1e-4)
  assert model.factor.shape == (0, 15)
  assert report == {'floored_fraction': 0, 'collections': 5}


@pytest.mark.parametrize('rank', [2, 5])
def test_higher_ranks_give_half_the_variance_and_the_last_deviations(rank):
  model, _ = fitted(rank)
  np.testing.assert_allclose(
    model.scale, VISITED.std(0) / np.sqrt(2), rtol=1e-4
  )
  columns = deviations(VISITED)[-rank:] / np.sqrt(2 * (rank - 1))
  np.testing.assert_allclose(model.factor, columns, atol=1e-6)


@pytest.mark.parametrize('settings', [{'start': 4}, {'burn_in': 0.4}])
def test_weights_before_the_start_are_not_averaged(settings):
  model, _ = fitted(2, **settings)
  np.testing.assert_allclose(model.loc, VISITED[2:].mean(0), atol=1e-6)
  # The rank is exactly the number of collections.
  part = swag.Swag(period=2, rank=3, **settings)
  part.check(facts.Facts(None, trainings=[(0, 10, 32)]))
  assert part.collections(10) == 3
  found = [swag.Swag(250, 25).collections(n) for n in (250, 275, 1580)]
  assert found == [0, 1, 53]
  with pytest.raises(ValueError, match='raise --local_epochs'):
    part.check(facts.Facts(None, trainings=[(0, 7, 32)]))


def test_a_small_variance_around_a_large_mean_is_precise():
  # Near 1000, float32 has steps of 6e-5; near its square, steps of 0.06.
  model, _ = fitted(0, 1000 + 0.01 * PATH)
  np.testing.assert_allclose(model.scale, 0.01 * VISITED.std(0), rtol=0.02)


def test_the_fraction_of_floored_scales_is_reported():
  free, _ = fitted(0)
  floor = float(np.median(free.scale))
  held, report = fitted(0, min_scale=floor)
  assert np.array_equal(held.scale, np.maximum(free.scale, floor))
  share = np.mean(free.scale < floor)
  assert report['floored_fraction'] == pytest.approx(share)


def test_each_posterior_sample_has_its_own_batch_statistics():
  pieces = toys.experiment(
    client_parts=('swag',), pooling='product', batch_size=150, local_epochs=4,
    num_server_examples=30, batch_norm='recalibrate', model='toys:normalized',
    server_parts=('ensemble',), predictor='S',
    **{
      'swag.rank': 2, 'swag.period': 1, 'ensemble.groups': 'S',
      'ensemble.num_samples': 3,
    },
  )  # fmt: skip
  state, groups = toys.groups(pieces)
  draws = groups['S']
  assert len(draws) == 3
  assert len({draw.buffers.tobytes() for draw in draws}) == 3
  # The spread of draws has the size of the pooled covariance.
  spread = np.std([draw.loc for draw in draws], 0).mean()
  assert 0 < spread < 10 * np.sqrt(state.model.variance()).mean()
