"""Laws that every partition keeps, and each one's own case by hand."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from bfl_tf import partitions

CIFAR = np.repeat(np.arange(10), 5000)
OPTIONS = {
  'class_split': {},
  'dirichlet': {'alpha': 5.0, 'min_examples': 1},
  'dirichlet_equal': {'alpha': 0.3},
  'iid': {},
  'interest': {'min_examples': 1},
  'majority': {'major_fraction': 0.8},
  'natural': {},
  'shards': {'classes_per_client': 2},
  'step': {'classes_per_client': 2, 'minor_examples': 1},
}
every_partition = pytest.mark.parametrize('name', sorted(OPTIONS))
seeds = strategies.integers(0, 2**31 - 1)


def split(name, labels, num_clients=10, seed=0, **options):
  options = OPTIONS[name] | options
  if name == 'natural':
    options['client_ids'] = np.arange(len(labels)) % max(1, int(num_clients))
  partition = partitions.PARTITIONS[name]
  return partition(labels, num_clients=num_clients, seed=seed, **options)


def same(first, second):
  return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def covers(parts, num_examples):
  whole = np.sort(np.concatenate(parts))
  return np.array_equal(whole, np.arange(num_examples))


def test_options_list_every_partition():
  assert sorted(OPTIONS) == sorted(partitions.PARTITIONS)


@every_partition
@hypothesis.given(seeds, strategies.integers(1, 20), strategies.data())
@hypothesis.settings(deadline=None, max_examples=40)
def test_parts_cover_every_example_once_and_none_is_empty(
  name, seed, num_clients, data
):
  sizes = data.draw(
    strategies.lists(strategies.integers(40, 90), min_size=2, max_size=6)
  )
  if name == 'class_split':
    num_clients = len(sizes)  # So that they divide.
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
def test_the_seed_decides(name):
  assert same(split(name, CIFAR, seed=3), split(name, CIFAR, seed=3))
  # Nothing is left to chance.
  fixed = name in ('class_split', 'natural')
  other = split(name, CIFAR, seed=4)
  assert same(split(name, CIFAR, seed=3), other) == fixed


@every_partition
@pytest.mark.parametrize('num_clients', [0, -1, 2.0, True])
def test_num_clients_is_checked(name, num_clients):
  with pytest.raises(ValueError, match='num_clients must be an integer'):
    split(name, CIFAR, num_clients)


@every_partition
def test_more_clients_than_examples_is_refused(name):
  with pytest.raises(ValueError, match='num_clients must not exceed the 4 ex'):
    split(name, np.array([0, 1, 0, 1]), 5)


@every_partition
def test_labels_and_seed_are_checked(name):
  with pytest.raises(ValueError, match='integer classes'):
    split(name, np.zeros(50))
  with pytest.raises(ValueError, match='must not be negative, got -1'):
    split(name, np.arange(-1, 30) // 2)
  with pytest.raises(ValueError, match='seed must be an integer of at least 0'):
    split(name, CIFAR, seed=-1)


def test_iid_sizes_differ_by_at_most_one():
  sizes = [part.size for part in split('iid', np.zeros(103, int))]
  assert sorted(sizes) == [10] * 7 + [11] * 3


def test_shards_of_cifar_are_twenty_of_2500():
  table = partitions.counts(CIFAR, split('shards', CIFAR), 10)
  assert np.array_equal(np.sort(table, axis=1)[:, -2:], np.full((10, 2), 2500))
  assert np.all((table > 0).sum(axis=1) == 2)
  assert np.all((table > 0).sum(axis=0) == 2)


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


@pytest.mark.parametrize(
  'options, message',
  [
    ({'classes_per_client': 11}, 'classes_per_client must not exceed the 10'),
    ({'classes_per_client': 0}, 'classes_per_client must be an integer'),
    ({'num_clients': 3}, 'num_clients=3 with classes_per_client=2 cannot'),
  ],
)
def test_shards_refuse(options, message):
  with pytest.raises(ValueError, match=message):
    split('shards', CIFAR, **options)


def test_shards_refuse_a_class_smaller_than_its_shards():
  labels = np.array([0] * 100 + [1])
  with pytest.raises(ValueError, match='cuts class 1 into 4 shards'):
    split('shards', labels, 4, classes_per_client=2)


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


def test_hold_out_errors_and_seed():
  with pytest.raises(ValueError, match='num_server_examples must not exceed'):
    partitions.hold_out(CIFAR, num_examples=50001, seed=0)
  with pytest.raises(ValueError, match='num_server_examples must be an int'):
    partitions.hold_out(CIFAR, num_examples=-1, seed=0)
  draws = [
    partitions.hold_out(CIFAR, num_examples=1000, seed=seed)[0]
    for seed in (1, 1, 2)
  ]
  assert np.array_equal(draws[0], draws[1])
  assert not np.array_equal(draws[0], draws[2])


def test_counts_by_hand():
  labels = np.array([0, 1, 1, 2])
  table = partitions.counts(labels, [[0, 1], [2, 3]], 4)
  assert table.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]
  with pytest.raises(ValueError, match='num_classes must exceed every label'):
    partitions.counts(labels, [[0]], 2)
