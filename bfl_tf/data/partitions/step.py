"""A few major classes per client, and few or no examples of all others.

FedBE (Chen & Chao 2021, section 5.2): on CIFAR-10 without 10 000 server images,
each of ten clients has 2 major classes with 1 960 images and 8 minor classes
with 10. Here every image belongs to one client. In the published code, a minor
image can also belong to the shard of another client.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting
from bfl_tf.declare.settings import Setting


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
  """Gives each client a few major classes, and few examples of the others.

  The examples of a class that remain after the minor shares are split evenly
  among the clients with this major class.

  Two clients may have the same major classes. Their assignment can change
  results more than the method does, so compare methods at the same seed.
  """
  return _dealt(
    labels, num_clients, seed, 'step', classes_per_client, minor_examples
  )


def shards(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: Annotated[int, splitting.CLASSES_PER_CLIENT] = 2,
) -> list[np.ndarray]:
  """Gives each client one shard of each of `classes_per_client` classes.

  Every class is cut into shards whose sizes differ by at most 1. The
  `num_clients * classes_per_client` shards are allotted to the classes as
  evenly as possible, with remaining shards for the largest classes. CIFAR-10
  with 10 clients has 20 shards of 2500 examples (Fischer et al. 2024).
  """
  return _dealt(labels, num_clients, seed, 'shards', classes_per_client, 0)


def _dealt(
  labels, num_clients, seed, draws, classes_per_client, minor_examples
):
  """Returns the examples of each client, with random draws of this name."""
  rng = seeds.generator(seed, draws)
  allotted = _allot(labels, num_clients, classes_per_client, rng)
  major = _deal(allotted, num_clients, classes_per_client, rng)
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


def _allot(labels, num_clients, classes_per_client, rng):
  """Returns the number of shards of each class."""
  classes, sizes = np.unique(labels, return_counts=True)
  num_shards = num_clients * classes_per_client
  allotted = np.full(classes.size, num_shards // classes.size)
  largest_first = np.lexsort((rng.random(classes.size), -sizes))
  allotted[largest_first[: num_shards % classes.size]] += 1
  enough = classes_per_client <= classes.size <= num_shards
  if not enough or np.any(sizes < allotted):
    raise ValueError(
      f'num_clients={num_clients} with classes_per_client={classes_per_client}:'
      f' {classes.size} classes of {sizes.min()} or more examples cannot be '
      f'divided into {num_shards} shards with different classes per client.'
    )
  return allotted


def _deal(allotted, num_clients, classes_per_client, rng):
  """Assigns classes to clients; returns booleans `[num_clients, num_classes]`.

  A client must take a class with as many shards left as clients are left. Every
  later client then finds enough different classes.
  """
  left = allotted.copy()
  dealt = np.zeros((num_clients, left.size), bool)
  for k in range(num_clients):
    # Weighted sampling without replacement: the largest log u / weight first.
    with np.errstate(divide='ignore'):
      key = np.where(left > 0, np.log(rng.random(left.size)) / left, -np.inf)
    key[left == num_clients - k] = np.inf
    dealt[k, np.argsort(key)[-classes_per_client:]] = True
    left -= dealt[k]
  return rng.permutation(dealt)
