"""Tests of properties of all partitions, and of single partitions by hand."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from bfl_tf.data import partitions

CIFAR = np.repeat(np.arange(10), 5000)
OPTIONS = {
  'dirichlet': {'alpha': 5.0, 'min_examples': 1},
  'interest': {'min_examples': 1},
  'shards': {'classes_per_client': 2},
  'step': {'classes_per_client': 2, 'minor_examples': 1},
}
every_partition = pytest.mark.parametrize('name', partitions.PARTITIONS)
seeds = strategies.integers(0, 2**31 - 1)


def split(name, labels, num_clients=10, seed=0, **options):
  options = OPTIONS.get(name, {}) | options
  if name == 'natural':
    options['client_ids'] = np.arange(len(labels)) % num_clients
  partition = partitions.PARTITIONS[name]
  return partition(labels, num_clients=num_clients, seed=seed, **options)


def same(first, second):
  return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def covers(parts, num_examples):
  whole = np.sort(np.concatenate(parts))
  return np.array_equal(whole, np.arange(num_examples))


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
  assert covers(parts, labels.size)
  for part in parts:
    assert part.size > 0
    assert part.dtype == np.int32
    assert np.all(np.diff(part) > 0)


@every_partition
def test_a_partition_depends_only_on_the_seed(name):
  assert same(split(name, CIFAR, seed=3), split(name, CIFAR, seed=3))
  # These partitions are not random.
  fixed = name in ('class_split', 'natural')
  other = split(name, CIFAR, seed=4)
  assert same(split(name, CIFAR, seed=3), other) == fixed


def test_label_quantity_assigns_the_specified_number_of_classes():
  parts = split('label_quantity', CIFAR, 20, classes_per_client=3)
  table = partitions.counts(CIFAR, parts, 10)
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


def test_iid_sizes_differ_by_at_most_one():
  sizes = [part.size for part in split('iid', np.zeros(103, int))]
  assert sorted(sizes) == [10] * 7 + [11] * 3


@hypothesis.given(seeds, *(strategies.integers(1, n) for n in (12, 7, 7)))
@hypothesis.settings(deadline=None)
def test_shards_hold_exactly_k_classes(seed, num_clients, num_classes, k):
  hypothesis.assume(k <= num_classes <= num_clients * k)
  labels = np.tile(np.arange(num_classes), 30)
  parts = split('shards', labels, num_clients, seed, classes_per_client=k)
  table = partitions.counts(labels, parts, num_classes)
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
  assert covers([held, rest], labels.size)
  taken = partitions.counts(labels, [held], len(sizes))[0]
  for c, size in enumerate(sizes):
    assert taken[c] >= min(size, taken.max() - 1)


def test_hold_out_depends_on_the_seed_and_counts_match():
  draws = [
    partitions.hold_out(CIFAR, num_examples=1000, seed=seed)[0]
    for seed in (1, 1, 2)
  ]
  assert np.array_equal(draws[0], draws[1])
  assert not np.array_equal(draws[0], draws[2])
  table = partitions.counts(np.array([0, 1, 1, 2]), [[0, 1], [2, 3]], 4)
  assert table.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]


# Partition, wrong argument, and its value.
INVALID = [
  ('class_split', 'equal division', {'num_clients': 3}),
  ('dirichlet', 'min_examples=6000', {'min_examples': 6000}),
  ('label_quantity', 'larger sample', {'classes_per_client': 11}),
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
