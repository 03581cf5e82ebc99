"""Random assignment of a few classes to each client."""

import numpy as np


def allot(labels, num_clients, classes_per_client, rng):
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


def deal(allotted, num_clients, classes_per_client, rng):
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
