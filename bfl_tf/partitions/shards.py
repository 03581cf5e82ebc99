"""Each client sees a few classes only (Fischer et al. 2024, two classes).

Every class is cut into shards of equal size, and each client is dealt shards
of different classes: CIFAR-10 among 10 clients gives 20 shards of 2500.
"""

import numpy as np

from bfl_tf import seeds
from bfl_tf.partitions import splitting


def shards(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: int = 2,
) -> list[np.ndarray]:
  """Gives each client one shard of each of `classes_per_client` classes.

  The `num_clients * classes_per_client` shards are allotted to the classes as
  evenly as possible, an odd one to the largest class. A shard holds one class
  only; shards of one class differ in size by at most 1. So all shards are
  equal where classes are and their number divides the number of shards.

  Args:
    labels: integer classes `[num_examples]`.
    num_clients: how many parts.
    seed: a non-negative integer.
    classes_per_client: how many different classes each client holds.

  Returns:
    One sorted int32 index array per client; they cover every example.

  Raises:
    ValueError: fewer classes than `classes_per_client`, fewer shards than
      classes, or a class with fewer examples than shards.
  """
  labels = splitting.check(labels, num_clients, seed)
  splitting.check_integer('classes_per_client', classes_per_client)
  rng = seeds.generator(seed, 'shards')
  allotted = _allot(labels, num_clients, classes_per_client, rng)
  dealt = _deal(allotted, num_clients, classes_per_client, rng)
  pools = splitting.class_pools(labels, seed)
  shares = np.zeros(dealt.shape, np.int64)
  for c, pool in enumerate(pools):
    cuts = np.array_split(pool, allotted[c])
    shares[dealt[:, c], c] = rng.permutation([cut.size for cut in cuts])
  return splitting.deal(pools, shares)


def _allot(labels, num_clients, classes_per_client, rng):
  """Returns how many shards each class is cut into."""
  classes, sizes = np.unique(labels, return_counts=True)
  num_shards = num_clients * classes_per_client
  if classes_per_client > classes.size:
    raise ValueError(
      f'classes_per_client must not exceed the {classes.size} classes that '
      f'have examples, got {classes_per_client}.'
    )
  if num_shards < classes.size:
    raise ValueError(
      f'num_clients={num_clients} with classes_per_client='
      f'{classes_per_client} cannot hold {classes.size} classes.'
    )
  allotted = np.full(classes.size, num_shards // classes.size)
  largest_first = np.lexsort((rng.random(classes.size), -sizes))
  allotted[largest_first[: num_shards % classes.size]] += 1
  short = np.flatnonzero(sizes < allotted)
  if short.size:
    c = short[0]
    raise ValueError(
      f'num_clients={num_clients} with classes_per_client='
      f'{classes_per_client} cuts class {classes[c]} into {allotted[c]} '
      f'shards, but it has {sizes[c]} examples.'
    )
  return allotted


def _deal(allotted, num_clients, classes_per_client, rng):
  """Deals classes to clients; returns booleans `[num_clients, num_classes]`.

  A class with as many shards left as there are clients left must be taken; as
  long as that holds, the next client always finds enough different classes.
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
