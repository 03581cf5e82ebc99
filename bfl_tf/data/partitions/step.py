"""Each client has a few major classes and a little of all others (FedBE).

Chen & Chao 2021, section 5.2: on CIFAR-10 less 10 000 server images, ten
clients have 2 major classes with 1 960 images each and 8 minor ones with 10.
No image is in two places; the published code lets a minor image also sit in
another client's shard.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.config.settings import Setting
from bfl_tf.data.partitions import class_dealing, splitting


def step(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: Annotated[
    int, Setting('Number of major classes per client.', ge=1)
  ] = 2,
  minor_examples: Annotated[
    int, Setting('Number of examples per client and minor class.', ge=0)
  ] = 10,
) -> list[np.ndarray]:
  """Gives each client `classes_per_client` major classes, the others thinly.

  What is left of a class after the minor shares is split evenly among the
  clients that have it as a major one.

  Two clients may have the same major classes. Which do matters more than most
  methods: compare methods at the same seed.
  """
  rng = seeds.generator(seed, 'step')
  allotted = class_dealing.allot(labels, num_clients, classes_per_client, rng)
  major = class_dealing.deal(allotted, num_clients, classes_per_client, rng)
  pools = splitting.class_pools(labels, seed)
  shares = np.where(major, 0, minor_examples)
  for c, pool in enumerate(pools):
    left, clients = pool.size - shares[:, c].sum(), major[:, c].sum()
    if clients == 0 or left // clients <= minor_examples:
      raise ValueError(
        f'minor_examples={minor_examples} with num_clients={num_clients} and '
        f'classes_per_client={classes_per_client} leaves {left} of '
        f'{pool.size} examples for {clients} major shares of a class.'
      )
    sizes = [cut.size for cut in np.array_split(np.arange(left), clients)]
    shares[major[:, c], c] = rng.permutation(sizes)
  return splitting.deal(pools, shares)
