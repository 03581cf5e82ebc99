"""A few classes per client (Fischer et al. 2024, two classes).

Every class is cut into shards of equal size, and each client gets shards of
different classes. CIFAR-10 with 10 clients has 20 shards of 2500 examples.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import class_dealing, splitting


def shards(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: Annotated[int, splitting.CLASSES_PER_CLIENT] = 2,
) -> list[np.ndarray]:
  """Gives each client one shard of each of `classes_per_client` classes.

  The `num_clients * classes_per_client` shards are allotted to the classes as
  evenly as possible, with remaining shards for the largest classes. A shard has
  examples of one class. Shards of one class differ in size by at most 1.
  """
  rng = seeds.generator(seed, 'shards')
  allotted = class_dealing.allot(labels, num_clients, classes_per_client, rng)
  dealt = class_dealing.deal(allotted, num_clients, classes_per_client, rng)
  pools = splitting.class_pools(labels, seed)
  shares = np.zeros(dealt.shape, np.int64)
  for c, pool in enumerate(pools):
    cuts = np.array_split(pool, allotted[c])
    shares[dealt[:, c], c] = rng.permutation([cut.size for cut in cuts])
  return splitting.deal(pools, shares)
