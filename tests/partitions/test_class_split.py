"""Tests of the partition `class_split`, with disjoint class ranges."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from bfl_tf.data import partitions


def split(labels, num_clients, seed=0):
  return partitions.class_split(labels, num_clients=num_clients, seed=seed)


def test_classes_without_examples_are_not_assigned():
  parts = split(np.array([7, 0, 7, 2, 9, 2]), 2)
  assert [part.tolist() for part in parts] == [[1, 3, 5], [0, 2, 4]]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**31 - 1))
def test_ranges_are_disjoint_and_in_order(num_clients, of_each, seed):
  rng = np.random.default_rng(seed)
  num_classes = num_clients * of_each
  labels = rng.permutation(
    np.concatenate([np.arange(num_classes), rng.integers(num_classes, size=60)])
  )
  parts = split(labels, num_clients, seed)
  for client, part in enumerate(parts):
    own = np.arange(client * of_each, (client + 1) * of_each)
    assert np.unique(labels[part]).tolist() == own.tolist()
