"""Tests of held-out shares and of moments that are merged over sites."""

import dataclasses

import numpy as np
import pytest

from bfl_tf import data
from bfl_tf.data import columns, moments, shares


def hold_out(split, fraction=0.2):
  return shares.hold_out('x', split, 'test_fraction', fraction)


def _sites(labels, num_sites):
  """Returns examples of sites with the same labels and distinct inputs."""
  y = np.tile(np.asarray(labels, np.int32), num_sites)
  x = np.random.default_rng(0).normal(size=[y.size, 2]).astype(np.float32)
  return x, y, np.repeat(np.arange(num_sites), len(labels))


@pytest.mark.parametrize(
  'labels, fraction',
  [
    ([0] * 8 + [1] * 2, 0.2),  # Rounding would give 2 and 0 at each site.
    ([0] * 17 + [1] * 3, 0.1),
    ([0] * 46 + [1] * 2 + [2] * 2, 0.2),
    ([0, 1, 2, 3, 4], 0.2),
  ],
)
def test_each_example_is_held_out_with_the_same_probability(labels, fraction):
  x, y, ids = _sites(labels, 2000)
  held, rest = hold_out(columns.Split(x, y, ids), fraction)
  assert np.array_equal(np.sort(np.r_[held, rest]), np.arange(y.size))
  by_place = np.isin(np.arange(y.size), held).reshape(2000, -1).mean(0)
  error = np.sqrt(fraction * (1 - fraction) / 2000)
  np.testing.assert_allclose(by_place, fraction, atol=4 * error)


def test_each_class_gets_its_quota_rounded_up_or_down():
  rng = np.random.default_rng(0)
  for _ in range(200):
    size, fraction = rng.integers(5, 60), rng.uniform(0.05, 0.6)
    y = rng.choice(4, size, p=[0.6, 0.25, 0.1, 0.05]).astype(np.int32)
    x = rng.normal(size=[size, 2]).astype(np.float32)
    held, _ = hold_out(columns.Split(x, y), fraction)
    total = max(1, round(fraction * size))
    assert held.size == total
    exact = total * np.bincount(y, minlength=4) / size
    found = np.bincount(y[held], minlength=4)
    assert np.all((np.floor(exact) <= found) & (found <= np.ceil(exact)))


def test_the_share_of_a_site_does_not_depend_on_other_sites():
  x, y, ids = _sites([0, 0, 0, 1, 1, 2, 2, 2, 2, 2], 3)
  together, _ = hold_out(columns.Split(x, y, ids))
  for site in range(3):
    (rows,) = np.nonzero(ids == site)
    # At a single site, classes may have other numbers in the same order.
    own = columns.Split(x[rows], y[rows] * 3 + 1)
    alone, _ = hold_out(own)
    assert np.array_equal(rows[alone], np.intersect1d(together, rows))


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
  if x.ndim == 2:
    x[::7, 1] = np.nan  # A missing value of a table.
  merged = moments.merged(x[ids == site] for site in 'abcd')
  axes = tuple(range(x.ndim - 1))
  mean, std = np.nanmean(x, axes), np.nanstd(x, axes)
  np.testing.assert_allclose(merged.mean, mean, rtol=1e-12, atol=1e-12)
  np.testing.assert_allclose(merged.std, std, rtol=1e-12)
  np.testing.assert_array_equal(merged.size, np.isfinite(x).sum(axes))


def test_a_small_variance_around_a_large_mean_is_precise():
  """E[x^2] - E[x]^2 would lose a spread of 1e-4 around 1e6."""
  x = (1e6 + 1e-4 * (np.arange(80) % 2))[:, None]
  merged = moments.merged(x[site::3] for site in range(3))
  np.testing.assert_allclose(merged.std, 5e-5, rtol=1e-5)


def test_the_scale_of_a_feature_that_is_constant_over_sites_is_1():
  x, y = np.full((9, 1), 0.1, np.float32), np.arange(9) % 2
  whole = data.from_arrays('ours', x, y, x, y)
  train = whole.train._replace(ids=np.arange(9) % 3)
  dataset = dataclasses.replace(whole, train=train)
  assert dataset.std.tolist() == [1]
  assert dataset.mean.tolist() == x[0].tolist()
