"""Partitions without settings."""

import numpy as np

from bfl_tf import seeds
from bfl_tf.data import columns
from bfl_tf.data.partitions import splitting


def iid(labels: np.ndarray, *, num_clients: int, seed: int) -> list[np.ndarray]:
  """Splits the examples at random; sizes differ by at most 1."""
  order = seeds.generator(seed, 'iid').permutation(labels.size)
  parts = np.array_split(order, num_clients)
  return [splitting.sorted_indices(part) for part in parts]


def natural(
  labels: np.ndarray, *, num_clients: int, seed: int, client_ids: np.ndarray
) -> list[np.ndarray]:
  """Gives each client the examples of one site, in order of the site names.

  There are as many clients as sites. The seed has no effect.
  """
  sites = columns.by_site(client_ids)
  if len(sites) != num_clients:
    raise ValueError(
      'there is one client per site: set '
      f'--num_clients={len(sites)} in place of {num_clients}.'
    )
  return [splitting.sorted_indices(indices) for _, indices in sites]


def class_split(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Gives each client all examples of its own range of classes.

  The number of observed classes must be a multiple of the number of clients.
  The seed has no effect. NIID(5) of Ozdayi et al. 2020 is CIFAR-10 with two
  clients: one has the first five classes, the other the last five.
  """
  ranges = np.split(np.unique(labels), num_clients)
  return [
    splitting.sorted_indices(np.flatnonzero(np.isin(labels, own)))
    for own in ranges
  ]
