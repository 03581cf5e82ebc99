"""Disjoint ranges of classes, one range per client.

NIID(5) of Ozdayi et al. 2020 is CIFAR-10 with two clients: one has the first
five classes, the other the last five.
"""

import numpy as np

from bfl_tf.data.partitions import splitting


def class_split(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Gives each client all examples of its own range of classes.

  The number of observed classes must be a multiple of the number of clients.
  The seed has no effect.
  """
  classes = np.unique(labels)
  ranges = np.split(classes, num_clients)
  return [
    splitting.sorted_indices(np.flatnonzero(np.isin(labels, own)))
    for own in ranges
  ]
