"""A class mix per client from a Dirichlet, equal sizes (Hsu et al. 2019).

Hsu et al. draw each client's examples from its own mix until classes run out,
so that the last clients get the leftovers. Here all mixes are normalised
alternately to class totals and to equal sizes, then rounded to integers that
keep both. The clients are exchangeable.

With equal sizes, the shares of a class vary less over clients than in the plain
Dirichlet. Ten clients and ten classes have 81 free shares in place of 90, so
for a large alpha the variance is 10 % smaller. It is 11 % smaller at alpha 5.0,
16 % at 0.5, and 20 % at 0.1 (300 draws, standard error 0.8).
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting, transport


def dirichlet_equal(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  alpha: Annotated[float, splitting.ALPHA] = 0.5,
) -> list[np.ndarray]:
  """Gives clients of equal size a class mix ~ Dirichlet(alpha) each.

  For a small alpha each client has few classes, as far as both sums permit. For
  a large alpha every client has all classes in proportion.

  References:
    T.-M. H. Hsu, H. Qi, M. Brown. Measuring the effects of non-identical data
    distribution for federated visual classification. 2019.
  """
  pools = splitting.class_pools(labels, seed)
  totals = np.array([pool.size for pool in pools])
  rng = seeds.generator(seed, 'dirichlet_equal')
  sizes = transport.equal_sizes(labels.size, num_clients, rng)
  mixes = splitting.log_mixes(rng, alpha, num_clients, totals.size)
  return splitting.deal(pools, transport.shares(mixes, sizes, totals))
