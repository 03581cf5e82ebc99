"""Partitions in which each client prefers one class, by its number.

#### References

[1]: Mehdi Makni. Deriving FL-SWAG as a one-shot method. 2022, algorithm 4. The
     paper does not print p; the released code has 0.25.
[2]: Qinbin Li et al. Federated learning on non-IID data silos: an experimental
     study. _ICDE_, 2022, section IV-A (#C = k).
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting
from bfl_tf.declare.settings import Setting

# Distributions of the clients' sizes.
_DRAWS = {
  'uniform': lambda rng, count: rng.random(count),
  'exponential': lambda rng, count: rng.exponential(size=count),
  'equal': lambda rng, count: np.ones(count),
}


def interest(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  proportion: Annotated[
    float,
    Setting(
      'Share p of a class in which a client has no interest, relative '
      'to a class of interest.',
      gt=0,
    ),
  ] = 0.25,
  sizes: Annotated[
    str,
    Setting(
      'Distribution of the numbers of examples per client.',
      choices=tuple(_DRAWS),
    ),
  ] = 'uniform',
  min_examples: Annotated[
    int, Setting('Minimum number of examples per client.', ge=1)
  ] = 10,
) -> list[np.ndarray]:
  """Splits each class by the clients' sizes and interests [1].

  Sizes are drawn and sorted, so that the last clients are the largest. Client m
  has interest 1 in class m mod C, and p in the others. Each class is split in
  proportion to size times interest. The draw is repeated, at most 1000 times,
  until each client has `min_examples`.
  """
  pools = splitting.class_pools(labels, seed)
  clients = np.arange(num_clients)
  interests = np.full((len(pools), num_clients), float(proportion))
  interests[clients % len(pools), clients] = 1.0
  rng = seeds.generator(seed, 'interest')

  def mixes():
    shares = np.sort(_DRAWS[sizes](rng, num_clients)) * interests
    return shares / shares.sum(1, keepdims=True)

  return splitting.deal_mixes(pools, mixes, num_clients, min_examples)


def label_quantity(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  classes_per_client: Annotated[int, splitting.CLASSES_PER_CLIENT] = 2,
) -> list[np.ndarray]:
  """Gives client i class i mod C and others at random, of C observed ones [2].

  A class is split evenly among the clients that have it, so that sizes differ.
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
