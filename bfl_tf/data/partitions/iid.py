"""Random partition, with the same distribution for every client."""

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting


def iid(labels: np.ndarray, *, num_clients: int, seed: int) -> list[np.ndarray]:
  """Splits the examples at random; sizes differ by at most 1."""
  order = seeds.generator(seed, 'iid').permutation(labels.size)
  parts = np.array_split(order, num_clients)
  return [splitting.sorted_indices(part) for part in parts]
