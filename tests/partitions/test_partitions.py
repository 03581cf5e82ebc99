"""Tests of all partitions, and of single partitions by hand."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest
import toys

from bfl_tf.data import partitions
from experiments.papers.fedbe import majority

CIFAR = np.repeat(np.arange(10), 5000)
OPTIONS = {
  'dirichlet': {'alpha': 5.0, 'min_examples': 1},
  'interest': {'min_examples': 1},
  'shards': {'classes_per_client': 2},
  'step': {'classes_per_client': 2, 'minor_examples': 1},
}
every_partition = pytest.mark.parametrize(
  'name', [*partitions.PARTITIONS, 'majority']
)
seeds = strategies.integers(0, 2**31 - 1)


def split(name, labels, num_clients=10, seed=0, **options):
  options = OPTIONS.get(name, {}) | options
  if name == 'natural':
    options['client_ids'] = np.arange(len(labels)) % num_clients
  partition = partitions.PARTITIONS.get(name, majority.majority)
  return partition(labels, num_clients=num_clients, seed=seed, **options)


def counts(name, labels, num_clients, seed=0, **options):
  """Returns the number of examples by client and class."""
  parts = split(name, labels, num_clients, seed, **options)
  return partitions.counts(labels, parts, max(labels) + 1)


def interest(num_clients=10, num_classes=10, each=6_000, **options):
  labels = np.repeat(np.arange(num_classes), each)
  return counts('interest', labels, num_clients, **options)


@every_partition
@hypothesis.given(seeds, strategies.integers(1, 20), strategies.data())
@hypothesis.settings(deadline=None, max_examples=40)
def test_parts_are_nonempty_and_cover_every_example_once(
  name, seed, num_clients, data
):
  sizes = data.draw(
    strategies.lists(strategies.integers(40, 90), min_size=2, max_size=6)
  )
  if name == 'class_split':
    num_clients = len(sizes)  # It must divide the number of classes.
  elif name == 'label_quantity':
    num_clients += len(sizes)  # Each class needs a client.
  hypothesis.assume(2 * num_clients >= len(sizes))
  labels = np.random.default_rng(seed).permutation(
    np.repeat(np.arange(len(sizes)), sizes)
  )
  parts = split(name, labels, num_clients, seed)
  assert len(parts) == num_clients
  whole = np.sort(np.concatenate(parts))
  assert np.array_equal(whole, np.arange(labels.size))
  if name in ('iid', 'majority'):
    assert np.ptp([part.size for part in parts]) <= 1
  for part in parts:
    assert part.size > 0
    assert part.dtype == np.int32
    assert np.all(np.diff(part) > 0)


@every_partition
def test_a_partition_depends_only_on_the_seed(name):
  first, same, other = (split(name, CIFAR, seed=seed) for seed in (3, 3, 4))
  assert toys.same(first, same)
  # These partitions are not random.
  assert toys.same(first, other) == (name in ('class_split', 'natural'))


def test_label_quantity_assigns_the_specified_number_of_classes():
  table = counts('label_quantity', CIFAR, 20, classes_per_client=3)
  assert np.all((table > 0).sum(axis=1) == 3)
  assert np.all(table[np.arange(20), np.arange(20) % 10] > 0)
  for column in table.T:
    assert np.ptp(column[column > 0]) <= 1


def test_natural_orders_sites_by_name():
  sites = np.array(['b', 'a', 'b', 'c', 'a', 'b'])
  parts = partitions.natural(
    np.zeros(6, int), num_clients=3, seed=0, client_ids=sites
  )
  assert [part.tolist() for part in parts] == [[1, 4], [0, 2, 5], [3]]


@hypothesis.given(seeds, *(strategies.integers(1, n) for n in (12, 7, 7)))
@hypothesis.settings(deadline=None)
def test_shards_hold_exactly_k_classes(seed, num_clients, num_classes, k):
  hypothesis.assume(k <= num_classes <= num_clients * k)
  labels = np.tile(np.arange(num_classes), 30)
  table = counts('shards', labels, num_clients, seed, classes_per_client=k)
  assert np.all((table > 0).sum(axis=1) == k)
  holders = (table > 0).sum(axis=0)
  assert holders.max() - holders.min() <= 1
  for column in table.T:
    assert np.ptp(column[column > 0]) <= 1


@hypothesis.given(
  seeds,
  strategies.lists(strategies.integers(0, 30), min_size=1, max_size=6),
  strategies.floats(0, 1),
)
def test_hold_out_is_class_balanced(seed, sizes, fraction):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  total = int(fraction * labels.size)
  held, rest = partitions.hold_out(labels, num_examples=total, seed=seed)
  assert held.size == total
  assert sorted([*held, *rest]) == [*range(labels.size)]
  taken = partitions.counts(labels, [held], len(sizes))[0]
  for c, size in enumerate(sizes):
    assert taken[c] >= min(size, taken.max() - 1)


def test_class_split_does_not_assign_classes_without_examples():
  labels = np.array([7, 0, 7, 2, 9, 2])
  parts = partitions.class_split(labels, num_clients=2, seed=0)
  assert [part.tolist() for part in parts] == [[1, 3, 5], [0, 2, 4]]


def test_the_class_of_interest_is_the_client_number_modulo_classes():
  table = interest(5, 2, 700, proportion=0.5, sizes='equal')
  # Class 0 is of interest to clients 0, 2, 4 (1 each), not to 1, 3 (1/2 each).
  assert table[:, 0].tolist() == [175, 87, 176, 87, 175]
  assert np.abs(table[:, 1] - [100, 200, 100, 200, 100]).max() <= 1


@pytest.mark.parametrize('sizes', ['uniform', 'exponential'])
def test_the_size_ratio_of_two_clients_is_the_same_in_every_class(sizes):
  table = interest(seed=2, sizes=sizes).astype(float)
  first, last = table[3], table[8]
  neither = [c for c in range(10) if c not in (3, 8)]
  ratios = (last / first)[neither]
  np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.02)
  assert ratios.mean() > 1
  np.testing.assert_allclose(last[8] / first[8] / ratios.mean(), 4, rtol=0.02)


def test_majority_and_step_match_hand_computed_values():
  table = counts('majority', np.repeat(np.arange(3), 300), 3)
  assert table.tolist() == [[240, 30, 30], [30, 240, 30], [30, 30, 240]]
  labels = np.repeat(np.arange(10), 4000)
  table = counts('step', labels, 10, minor_examples=10)
  assert np.all(np.sort(table, 1) == [10] * 8 + [1960] * 2)
  assert np.all((table == 1960).sum(0) == 2)


def tables(sizes, num_clients=10, **options):
  """Returns class counts for 60 seeds, `[60, num_clients, 10]`."""
  of_seeds = [
    counts('dirichlet', CIFAR, num_clients, seed, sizes=sizes, **options)
    for seed in range(60)
  ]
  return np.array(of_seeds)


def test_large_alphas_are_balanced():
  for sizes in ('free', 'equal', 'dirichlet'):
    alphas = {'alpha': 1e12, 'size_alpha': 1e12}
    table = counts('dirichlet', CIFAR, 10, sizes=sizes, **alphas)
    assert np.abs(table - 500).max() <= 1


def test_dirichlet_sizes_have_a_beta_distribution():
  # Each client has the same share of each class, Beta(1, 3) for 4 clients.
  shares = tables('dirichlet', 4, alpha=1e12) / 5000
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
def test_equal_sizes_differ_by_one_and_use_all_examples(
  seed, alpha, num_clients, sizes
):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  hypothesis.assume(num_clients <= labels.size)
  options = {'sizes': 'equal', 'alpha': alpha}
  table = counts('dirichlet', labels, num_clients, seed, **options)
  assert table.sum(0).tolist() == sizes
  assert np.ptp(table.sum(1)) <= 1


@pytest.mark.parametrize('alpha, num_clients', [(1e-300, 37), (1e-5, 10)])
def test_equal_sizes_with_a_tiny_alpha_gives_few_classes(alpha, num_clients):
  options = {'sizes': 'equal', 'alpha': alpha}
  table = counts('dirichlet', CIFAR, num_clients, **options)
  many = (table > 0.01 * table.sum(axis=1, keepdims=True)).sum()
  assert many <= num_clients + 10


def test_clients_of_equal_sizes_are_exchangeable():
  # The last client is as unbalanced as the first; it does not get the rest.
  peaks = tables('equal', alpha=0.1).max(axis=-1)
  gap = peaks[:, 0] - peaks[:, -1]
  assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(gap.size)


# Partition, wrong argument, and its value.
INVALID = [
  ('dirichlet', 'min_examples=6000', {'min_examples': 6000}),
  ('natural', 'num_clients=10', {'client_ids': CIFAR, 'num_clients': 4}),
  ('shards', 'classes_per_client', {'classes_per_client': 11}),
  ('shards', 'num_clients', {'num_clients': 3}),
  ('shards', 'classes of 1 or more', {
    'labels': np.array([0] * 100 + [1]), 'num_clients': 4,
  }),
  ('step', 'minor_examples', {'minor_examples': 700}),
  ('step', 'classes_per_client', {'classes_per_client': 11}),
]  # fmt: skip


def test_invalid_arguments_are_rejected_by_name():
  for name, named, changes in INVALID:
    arguments = {'labels': CIFAR, 'num_clients': 10, 'seed': 0}
    arguments |= OPTIONS.get(name, {}) | changes
    with pytest.raises(ValueError, match=named):
      partitions.PARTITIONS[name](**arguments)
  with pytest.raises(ValueError, match='num_server_examples'):
    partitions.hold_out(CIFAR, num_examples=50001, seed=0)
