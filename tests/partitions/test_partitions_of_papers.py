"""Tests of the partitions of FedBE and FL-SWAG, and of disjoint classes."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import of_papers
import pytest

from bfl_tf import data
from bfl_tf.data import partitions
from experiments.papers.fedbe import majority

seeds = st.integers(0, 2**31 - 1)


def counts(name, labels, num_clients, seed=0, **options):
  """Returns the number of examples by client and class."""
  function = partitions.PARTITIONS.get(name, majority.majority)
  parts = function(labels, num_clients=num_clients, seed=seed, **options)
  return partitions.counts(labels, parts, max(labels) + 1)


def interest(num_clients=10, num_classes=10, each=6_000, **options):
  labels = np.repeat(np.arange(num_classes), each)
  return counts('interest', labels, num_clients, **options)


def test_class_split_does_not_assign_classes_without_examples():
  labels = np.array([7, 0, 7, 2, 9, 2])
  parts = partitions.class_split(labels, num_clients=2, seed=0)
  assert [part.tolist() for part in parts] == [[1, 3, 5], [0, 2, 4]]


@hypothesis.given(st.integers(1, 4), st.integers(1, 4), seeds)
def test_class_split_gives_each_client_the_next_classes(
  num_clients, of_each, seed
):
  rng = np.random.default_rng(seed)
  num_classes = num_clients * of_each
  labels = rng.permutation(
    np.concatenate([np.arange(num_classes), rng.integers(num_classes, size=60)])
  )
  table = counts('class_split', labels, num_clients, seed)
  own = np.repeat(np.eye(num_clients), of_each, axis=1)
  assert np.array_equal(table > 0, own > 0)


def test_equal_sizes_of_interest_match_hand_computed_counts():
  # The 300 examples of a class are split 1 to 0.25 to 0.25.
  table = interest(3, 3, 300, proportion=0.25, sizes='equal')
  assert table.tolist() == [[200, 50, 50], [50, 200, 50], [50, 50, 200]]


def test_the_class_of_interest_is_the_client_number_modulo_classes():
  table = interest(5, 2, 700, proportion=0.5, sizes='equal')
  # Class 0 is of interest to clients 0, 2, 4 (1 each), not to 1, 3 (1/2 each).
  assert table[:, 0].tolist() == [175, 87, 176, 87, 175]
  assert np.abs(table[:, 1] - [100, 200, 100, 200, 100]).max() <= 1


@pytest.mark.parametrize('sizes', ['uniform', 'exponential'])
def test_the_size_ratio_of_two_clients_is_the_same_in_every_class(sizes):
  table = interest(seed=2, sizes=sizes).astype(float)
  # Shares of two clients have the ratio of their sizes in every class.
  first, last = table[3], table[8]
  neither = [c for c in range(10) if c not in (3, 8)]
  ratios = (last / first)[neither]
  np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.02)
  assert ratios.mean() > 1
  np.testing.assert_allclose(last[8] / first[8] / ratios.mean(), 4, rtol=0.02)


def test_without_preference_all_clients_have_the_same_class_shares():
  table = interest(4, 5, 1000, proportion=1.0)
  assert np.ptp(table, axis=1).max() <= 1
  assert np.all(np.diff(table.sum(1)) > 0)


def test_majority_counts_of_the_swiss_roll_match_hand_computed_values():
  labels = data.load(of_papers.SWISS_ROLL).train.y
  table = counts('majority', labels, 3)
  assert table.tolist() == [[240, 30, 30], [30, 240, 30], [30, 30, 240]]


@hypothesis.given(
  st.lists(st.integers(9, 60), min_size=1, max_size=5),
  st.integers(1, 9),
  st.floats(0.1, 0.9),
)
@hypothesis.settings(max_examples=20)
def test_majority_sizes_are_equal_for_unequal_classes(
  sizes, num_clients, fraction
):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  table = counts('majority', labels, num_clients, major_fraction=fraction)
  assert np.ptp(table.sum(1)) <= 1
  assert table.sum(0).tolist() == sizes


@hypothesis.given(
  st.integers(2, 5),
  st.integers(1, 3),
  st.integers(2, 40),
  st.floats(0.01, 0.99),
)
def test_clients_have_the_major_fraction_if_classes_are_equal(
  num_classes, turns, size, fraction
):
  labels = np.tile(np.arange(num_classes), size * turns)
  num_clients = num_classes * turns
  table = counts('majority', labels, num_clients, major_fraction=fraction)
  own = table[np.arange(num_clients), np.arange(num_clients) % num_classes]
  assert np.all(np.abs(own - fraction * size) < 1)


def test_step_counts_of_cifar_10_match_hand_computed_values():
  table = counts('step', np.repeat(np.arange(10), 4000), 10)
  assert np.all(np.sort(table, 1) == [10] * 8 + [1960] * 2)
  assert np.all((table == 1960).sum(0) == 2)


@hypothesis.given(
  st.integers(0, 99), st.integers(2, 6), st.integers(1, 3), st.integers(0, 4)
)
def test_step_clients_have_their_major_classes_and_minor_examples(
  seed, num_clients, majors, minors
):
  hypothesis.assume(num_clients * majors >= 3)
  labels = np.random.default_rng(seed).permutation(np.arange(600) % 3)
  options = {'classes_per_client': majors, 'minor_examples': minors}
  table = counts('step', labels, num_clients, seed, **options)
  assert np.all((table > minors).sum(1) == majors)
  assert np.all(table[table <= minors] == minors)
