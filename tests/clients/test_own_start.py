"""Clients that start from weights of their own."""

import functools

import numpy as np
import toys

from bfl_tf import clients

PARTS = (clients.OwnStart(),)
TINY = 1e-9  # Of a rate: what is left is the start.


@functools.cache
def trainer(parts):
  worker = toys.worker(parts=parts)
  return worker, toys.start(worker)


def started(seed, parts=PARTS, epochs=1):
  worker, begin = trainer(parts)
  begin = begin._replace(point=begin.point + np.float32(0.25))
  job = toys.job(begin, range(48), epochs=epochs, rate=TINY, seed=seed)
  return begin, worker.train(job).model


def test_kernels_are_drawn_by_the_client_and_biases_stay():
  draws = []
  for seed in range(40):
    begin, model = started(seed)
    np.testing.assert_allclose(model.point[12:], begin.point[12:], atol=1e-6)
    draws.append(model.point[:12])
  draws = np.array(draws)
  assert len(np.unique(draws.round(6))) == draws.size
  # N(0, 2 / 4): five standard errors.
  error = 1 / np.sqrt(draws.size)
  assert abs(draws.mean()) < 5 * error * np.sqrt(0.5)
  assert abs(draws.var() - 0.5) < 5 * error * np.sqrt(2) * 0.5


def test_it_is_drawn_once_in_a_training():
  _, one = started(3, epochs=1)
  _, ten = started(3, epochs=10)
  np.testing.assert_allclose(one.point, ten.point, atol=1e-5)
