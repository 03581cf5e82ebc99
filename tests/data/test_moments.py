"""Tests of moments that are merged over sites."""

import dataclasses

import numpy as np
import pytest

from bfl_tf import data
from bfl_tf.data import moments


@pytest.mark.parametrize('shape', [(90, 3), (30, 4, 4, 3)])
def test_merged_moments_are_those_of_all_examples(shape):
  rng = np.random.default_rng(0)
  # Sites differ in size, mean and spread.
  ids = np.sort(
    rng.choice(['a', 'b', 'c', 'd'], shape[0], p=[0.6, 0.2, 0.1, 0.1])
  )
  place = {'a': 0, 'b': 1e3, 'c': -5, 'd': 0.1}
  x = rng.normal(size=shape)
  x += np.array([place[i] for i in ids]).reshape(-1, *[1] * (x.ndim - 1))
  merged = moments.merged(x[ids == site] for site in 'abcd')
  axes = tuple(range(x.ndim - 1))
  np.testing.assert_allclose(merged.mean, x.mean(axes), rtol=1e-12, atol=1e-12)
  np.testing.assert_allclose(merged.std, x.std(axes), rtol=1e-12)
  assert np.all(merged.size == x.size // x.shape[-1])


def test_a_small_variance_around_a_large_mean_is_precise():
  """E[x^2] - E[x]^2 would lose a spread of 1e-4 around 1e6."""
  x = (1e6 + 1e-4 * (np.arange(80) % 2))[:, None]
  merged = moments.merged(x[site::3] for site in range(3))
  np.testing.assert_allclose(merged.std, 5e-5, rtol=1e-5)
  squares = np.mean(x**2) - np.mean(x) ** 2
  assert abs(squares - 2.5e-9) > 1e-6


def test_the_scale_of_a_feature_that_is_constant_over_sites_is_1():
  x, y = np.full((9, 1), 0.1, np.float32), np.arange(9) % 2
  whole = data.from_arrays('ours', x, y, x, y)
  train = whole.train._replace(ids=np.arange(9) % 3)
  dataset = dataclasses.replace(whole, train=train)
  assert dataset.std.tolist() == [1]
  assert dataset.mean.tolist() == x[0].tolist()
