"""FedBE's step split: majors, minors, no image in two places."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from bfl_tf import partitions

CIFAR = np.repeat(np.arange(10), 4000)


@pytest.mark.parametrize('deal', ['random', 'ring'])
def test_cifar_10_by_hand(deal):
  parts = partitions.step(CIFAR, num_clients=10, seed=0, deal=deal)
  counts = partitions.counts(CIFAR, parts, 10)
  assert np.all(np.sort(counts, 1) == [10] * 8 + [1960] * 2)
  assert np.all((counts == 1960).sum(0) == 2)
  if deal == 'ring':
    assert all(
      counts[k, k] == counts[k, (k + 1) % 10] == 1960 for k in range(10)
    )


@given(
  st.integers(0, 99), st.integers(2, 6), st.integers(1, 3), st.integers(0, 4)
)
def test_exact_cover_and_deterministic(seed, num_clients, majors, minors):
  labels = np.random.default_rng(seed).permutation(np.arange(600) % 3)
  make = lambda s: partitions.step(  # noqa: E731
    labels, num_clients=num_clients, seed=s, classes_per_client=majors,
    minor_examples=minors,
  )  # fmt: skip
  if num_clients * majors < 3:
    return
  parts = make(seed)
  assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(600))
  counts = partitions.counts(labels, parts, 3)
  assert np.all((counts > minors).sum(1) == majors)
  assert np.all(counts[counts <= minors] == minors)
  assert all(map(np.array_equal, parts, make(seed)))
