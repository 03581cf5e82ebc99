"""Clients of unequal sizes, each interested in one class (FL-SWAG, alg. 4).

Makni 2022, section 7: sizes are drawn and sorted. Client m has interest 1 in
class m mod C and p in the others. Each class is split in proportion to size
times interest. The paper does not print p; the released code has 0.25.
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
  """Splits each class by the clients' sizes and interests.

  The last clients are the largest. The draw is repeated, at most 1000 times,
  until each client has `min_examples`.

  References:
    M. Makni. Deriving FL-SWAG as a one-shot method. 2022, algorithm 4.
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
