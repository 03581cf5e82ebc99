"""Tests of the partition `majority` of FedBE's Figure 1."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import of_papers

from bfl_tf import data
from bfl_tf.data import partitions


def counts(labels, num_clients, num_classes, **options):
  parts = partitions.majority(
    labels, num_clients=num_clients, seed=0, **options
  )
  return partitions.counts(labels, parts, num_classes)


def test_counts_of_the_swiss_roll_match_hand_computed_values():
  labels = data.load(of_papers.SWISS_ROLL).train.y
  table = counts(labels, 3, 3)
  assert table.tolist() == [[240, 30, 30], [30, 240, 30], [30, 30, 240]]


@given(
  st.lists(st.integers(9, 60), min_size=1, max_size=5),
  st.integers(1, 9),
  st.floats(0.1, 0.9),
)
@settings(max_examples=20)
def test_sizes_are_equal_for_unequal_classes(sizes, num_clients, fraction):
  labels = np.repeat(np.arange(len(sizes)), sizes)
  table = counts(labels, num_clients, len(sizes), major_fraction=fraction)
  assert np.ptp(table.sum(1)) <= 1
  assert table.sum(0).tolist() == sizes


@given(
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
  table = counts(labels, num_clients, num_classes, major_fraction=fraction)
  own = table[np.arange(num_clients), np.arange(num_clients) % num_classes]
  assert np.all(np.abs(own - fraction * size) < 1)
