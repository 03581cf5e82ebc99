"""Tests of SWAG against moments of the weights along the training."""

import numpy as np
import pytest
import toys

from bfl_tf import clients, training

BATCHES, EPOCHS = 2, 5


def path(begin):
  """Returns the weights after every second step of the same training."""
  plain = toys.worker(inference=training.Inference(scope='all'))
  return np.stack(
    [
      plain.train(task(begin, epochs)).model.mean.astype(np.float64)
      for epochs in range(1, EPOCHS + 1)
    ]
  )


def task(begin, epochs=EPOCHS):
  return toys.task(begin, range(16 * BATCHES), epochs=epochs)


def fitted(rank, **settings):
  part = clients.Swag(period=BATCHES, rank=rank, **settings)
  worker = toys.worker(parts=(part,), inference=training.Inference(scope='all'))
  begin = toys.start(worker)
  return worker.train(task(begin)), path(begin)


def deviations(visited):
  """Returns deviations from the running mean, which includes each point."""
  counts = np.arange(1, len(visited) + 1)[:, np.newaxis]
  return visited - np.cumsum(visited, 0) / counts


def test_rank_0_gives_the_mean_and_variance_of_the_visited_weights():
  result, visited = fitted(0)
  # Without the scale, the part is SWA.
  alone, _ = fitted(0, fits_scale=False)
  assert toys.same(alone.model.mean, result.model.mean)
  assert alone.trace.report == {}
  np.testing.assert_allclose(result.model.loc, visited.mean(0), atol=1e-6)
  np.testing.assert_allclose(result.model.scale, visited.std(0), rtol=1e-4)
  assert result.model.factor.shape == (0, visited.shape[1])
  assert result.trace.report == {
    'swag_floored_fraction': 0,
    'swag_collections': EPOCHS,
  }


@pytest.mark.parametrize('rank', [2, 5])
def test_higher_ranks_give_half_the_variance_and_the_last_deviations(rank):
  result, visited = fitted(rank)
  np.testing.assert_allclose(
    result.model.scale, visited.std(0) / np.sqrt(2), rtol=1e-4
  )
  columns = deviations(visited)[-rank:] / np.sqrt(2 * (rank - 1))
  np.testing.assert_allclose(result.model.factor, columns, atol=1e-6)


@pytest.mark.parametrize('settings', [{'start': 4}, {'burn_in': 0.4}])
def test_weights_before_the_start_are_not_averaged(settings):
  result, visited = fitted(2, **settings)
  kept = visited[2:]
  np.testing.assert_allclose(result.model.loc, kept.mean(0), atol=1e-6)
  # The rank is exactly the number of collections.
  part = clients.Swag(period=BATCHES, rank=3, **settings)
  part.check(10, 32)
  assert part.collections(10) == 3
  found = [clients.Swag(250, 25).collections(n) for n in (250, 275, 1580)]
  assert found == [0, 1, 53]
  with pytest.raises(ValueError, match=r'only [12] of at least 3'):
    part.check(7, 32)


def test_a_small_variance_around_a_large_mean_is_precise():
  worker = toys.worker(
    parts=(clients.Swag(period=2, rank=0),),
    inference=training.Inference(scope='all'),
  )
  begin = toys.start(worker)
  # A constant added to the biases of all classes does not change gradients.
  far = begin.loc.copy()
  far[-3:] += 1000
  near = worker.train(toys.task(begin, range(32), epochs=50))
  moved = worker.train(toys.task(begin._replace(loc=far), range(32), epochs=50))
  # Near 1000, float32 has steps of 6e-5; near its square, steps of 0.06.
  np.testing.assert_allclose(
    moved.model.scale[-3:], near.model.scale[-3:], atol=1e-3
  )
  assert near.model.scale[-3:].min() > 0.01


def test_the_fraction_of_floored_scales_is_reported():
  free, _ = fitted(0)
  floor = float(np.median(free.model.scale))
  held, _ = fitted(0, min_scale=floor)
  assert np.array_equal(held.model.scale, np.maximum(free.model.scale, floor))
  share = np.mean(free.model.scale < floor)
  assert held.trace.report['swag_floored_fraction'] == pytest.approx(share)


def test_each_posterior_sample_has_its_own_batch_statistics():
  pieces = toys.experiment(
    client_parts=('swag',), pooling='product', batch_size=150, local_epochs=4,
    num_server_examples=30, batch_norm='recalibrate', model='toys:normalized',
    refine=('ensemble',), predictor='S',
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
