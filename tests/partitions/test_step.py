"""Tests of FedBE's partition `step`."""

import hypothesis
from hypothesis import strategies as st
import numpy as np

from bfl_tf.data import partitions

CIFAR = np.repeat(np.arange(10), 4000)


def test_counts_of_cifar_10_match_hand_computed_values():
  parts = partitions.step(CIFAR, num_clients=10, seed=0)
  counts = partitions.counts(CIFAR, parts, 10)
  assert np.all(np.sort(counts, 1) == [10] * 8 + [1960] * 2)
  assert np.all((counts == 1960).sum(0) == 2)


@hypothesis.given(
  st.integers(0, 99), st.integers(2, 6), st.integers(1, 3), st.integers(0, 4)
)
def test_clients_have_the_specified_major_classes_and_minor_examples(
  seed, num_clients, majors, minors
):
  hypothesis.assume(num_clients * majors >= 3)
  labels = np.random.default_rng(seed).permutation(np.arange(600) % 3)
  parts = partitions.step(
    labels, num_clients=num_clients, seed=seed, classes_per_client=majors,
    minor_examples=minors,
  )  # fmt: skip
  counts = partitions.counts(labels, parts, 3)
  assert np.all((counts > minors).sum(1) == majors)
  assert np.all(counts[counts <= minors] == minors)
