"""Tests of FL-SWAG's partition `interest`."""

import numpy as np
import pytest

from bfl_tf.data import partitions


def counts(num_clients=10, num_classes=10, each=6_000, seed=0, **options):
  labels = np.repeat(np.arange(num_classes), each)
  parts = partitions.interest(
    labels, num_clients=num_clients, seed=seed, **options
  )
  return partitions.counts(labels, parts, num_classes)


def test_equal_sizes_match_hand_computed_counts():
  # The 300 examples of a class are split 1 to 0.25 to 0.25.
  table = counts(3, 3, 300, proportion=0.25, sizes='equal')
  assert table.tolist() == [[200, 50, 50], [50, 200, 50], [50, 50, 200]]


def test_the_class_of_interest_is_the_client_number_modulo_classes():
  table = counts(5, 2, 700, proportion=0.5, sizes='equal')
  # Class 0 is of interest to clients 0, 2, 4 (1 each), not to 1, 3 (1/2 each).
  assert table[:, 0].tolist() == [175, 87, 176, 87, 175]
  assert np.abs(table[:, 1] - [100, 200, 100, 200, 100]).max() <= 1


@pytest.mark.parametrize('sizes', ['uniform', 'exponential'])
def test_the_size_ratio_of_two_clients_is_the_same_in_every_class(
  sizes,
):
  table = counts(seed=2, sizes=sizes).astype(float)
  # Shares of two clients have the ratio of their sizes in every class.
  first, last = table[3], table[8]
  neither = [c for c in range(10) if c not in (3, 8)]
  ratios = (last / first)[neither]
  np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.02)
  assert ratios.mean() > 1
  np.testing.assert_allclose(last[8] / first[8] / ratios.mean(), 4, rtol=0.02)


def test_without_preference_all_clients_have_the_same_class_shares():
  table = counts(4, 5, 1000, proportion=1.0)
  assert np.ptp(table, axis=1).max() <= 1
  assert np.all(np.diff(table.sum(1)) > 0)
