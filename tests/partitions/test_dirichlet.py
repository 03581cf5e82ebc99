"""Tests of Dirichlet partitions: limits of alpha, moments, sums, symmetry."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from bfl_tf.data import partitions

CIFAR = np.repeat(np.arange(10), 5000)


def split(labels, sizes, num_clients=10, seed=0, **options):
  return partitions.dirichlet(
    labels, num_clients=num_clients, seed=seed, sizes=sizes, **options
  )


def tables(sizes, num_clients=10, **options):
  """Returns class counts for 60 seeds, `[60, num_clients, 10]`."""
  parts = (split(CIFAR, sizes, num_clients, s, **options) for s in range(60))
  return np.array([partitions.counts(CIFAR, part, 10) for part in parts])


@pytest.mark.parametrize('sizes', ['free', 'equal', 'dirichlet'])
def test_large_alphas_are_balanced(sizes):
  parts = split(CIFAR, sizes, alpha=1e12, size_alpha=1e12)
  assert np.abs(partitions.counts(CIFAR, parts, 10) - 500).max() <= 1


def test_dirichlet_sizes_have_a_beta_distribution():
  # Each client has the same share of each class, Beta(1, 3) for 4 clients.
  shares = tables('dirichlet', 4, alpha=1e12, min_examples=1) / 5000
  assert np.ptp(shares, axis=2).max() < 1e-3
  squares = np.square(shares[..., 0] - 0.25)
  error = squares.std() / np.sqrt(60)
  assert abs(squares.mean() - 0.25 * 0.75 / 5) < 4 * error


def test_dirichlet_shares_have_the_variance_of_a_beta_distribution():
  # Beta(alpha, (K - 1) alpha) is each client's share of a class.
  shares = tables('free', 4, alpha=0.5) / 5000
  variance = 0.25 * 0.75 / (4 * 0.5 + 1)
  # 600 classes are independent, the four shares of one are not.
  error = np.std(np.square(shares - 0.25)) / np.sqrt(600)
  assert abs(np.mean(np.square(shares - 0.25)) - variance) < 5 * error


@hypothesis.given(
  strategies.integers(0, 2**31 - 1),
  strategies.floats(1e-12, 1e9),
  strategies.integers(1, 30),
  strategies.lists(strategies.integers(1, 99), min_size=1, max_size=8),
)
@hypothesis.settings(max_examples=25)
def test_equal_sizes_differ_by_one_and_uses_all_examples(
  seed, alpha, num_clients, sizes
):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  hypothesis.assume(num_clients <= labels.size)
  parts = split(labels, 'equal', num_clients, seed, alpha=alpha)
  whole = np.sort(np.concatenate(parts))
  assert np.array_equal(whole, np.arange(labels.size))
  assert np.ptp([part.size for part in parts]) <= 1


@pytest.mark.parametrize('alpha, num_clients', [(1e-300, 37), (1e-5, 10)])
def test_equal_sizes_with_a_tiny_alpha_gives_few_classes(alpha, num_clients):
  parts = split(CIFAR, 'equal', num_clients, alpha=alpha)
  table = partitions.counts(CIFAR, parts, 10)
  many = (table > 0.01 * table.sum(axis=1, keepdims=True)).sum()
  assert many <= num_clients + 10


def test_clients_of_equal_sizes_are_exchangeable():
  # The last client is as unbalanced as the first; it does not get the rest.
  peaks = tables('equal', alpha=0.1).max(axis=-1)
  gap = peaks[:, 0] - peaks[:, -1]
  assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(gap.size)


def test_equal_sizes_have_the_variance_of_their_degrees_of_freedom():
  # Small deviations are approximately normal. Both sums leave 9 x 9 of 10 x 9
  # degrees of freedom.
  alpha = 50.0
  shares = tables('equal', alpha=alpha) / 5000
  variances = np.square(shares - 0.1).mean(axis=(1, 2))
  plain = 0.1 * 0.9 / (10 * alpha + 1)
  error = variances.std() / np.sqrt(variances.size)
  assert abs(variances.mean() - 0.9 * plain) < 5 * error
  assert plain - variances.mean() > 3 * error
