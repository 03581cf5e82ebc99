"""A few classes per client, one by number, others at random (NIID-Bench)."""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting


def label_quantity(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: Annotated[int, splitting.CLASSES_PER_CLIENT] = 2,
) -> list[np.ndarray]:
  """Gives client i class i mod C, of C observed classes, and others at random.

  A class is split evenly among the clients that have it, so that sizes differ.

  References:
    Q. Li et al. Federated learning on non-IID data silos: an experimental
    study. ICDE 2022, section IV-A (#C = k).
  """
  pools = splitting.class_pools(labels, seed)
  rng = seeds.generator(seed, 'label_quantity')
  shares = np.zeros((num_clients, len(pools)), np.int64)
  for client, row in enumerate(shares):
    own = client % len(pools)
    others = np.delete(np.arange(len(pools)), own)
    row[[own, *rng.choice(others, classes_per_client - 1, replace=False)]] = 1
  for c, pool in enumerate(pools):
    holders = np.flatnonzero(shares[:, c])
    shares[holders, c] = [len(s) for s in np.array_split(pool, holders.size)]
  return splitting.deal(pools, shares)
