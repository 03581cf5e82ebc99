"""A client a site."""

import numpy as np

from bfl_tf import partitions

SITES = np.array(['b', 'a', 'b', 'c', 'a', 'b'])


def test_sites_by_the_order_of_their_names():
  parts = partitions.natural(
    np.zeros(6, int), num_clients=3, seed=0, client_ids=SITES
  )
  assert [part.tolist() for part in parts] == [[1, 4], [0, 2, 5], [3]]
