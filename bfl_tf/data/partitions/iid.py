"""Examples dealt at random: every client sees the whole distribution."""

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting


def iid(labels: np.ndarray, *, num_clients: int, seed: int) -> list[np.ndarray]:
  """Deals the examples at random into parts whose sizes differ by at most 1."""
  order = seeds.generator(seed, 'iid').permutation(labels.size)
  parts = np.array_split(order, num_clients)
  return [splitting.sorted_indices(part) for part in parts]
