"""A client a site."""

import numpy as np
import pytest

from bfl_tf import partitions

SITES = np.array(['b', 'a', 'b', 'c', 'a', 'b'])


def test_sites_by_the_order_of_their_names():
  parts = partitions.natural(
    np.zeros(6, int), num_clients=3, seed=0, client_ids=SITES
  )
  assert [part.tolist() for part in parts] == [[1, 4], [0, 2, 5], [3]]


@pytest.mark.parametrize('num_clients', [2, 4])
def test_another_number_of_clients(num_clients):
  with pytest.raises(ValueError, match='of the 3 sites: set --num_clients=3'):
    partitions.natural(
      np.zeros(6, int), num_clients=num_clients, seed=0, client_ids=SITES
    )
