"""Class proportions over clients from a Dirichlet (Yurochkin et al. 2019).

Sizes differ between clients. This module follows the text of the paper. Its
released code and NIID-Bench give no more classes to a client of mean size.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting


def dirichlet(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  alpha: Annotated[float, splitting.ALPHA] = 0.5,
  min_examples: Annotated[int, splitting.MIN_EXAMPLES] = 10,
) -> list[np.ndarray]:
  """Splits each class over the clients by proportions ~ Dirichlet(alpha).

  The draw is repeated, at most 1000 times, until each client has
  `min_examples`.

  References:
    M. Yurochkin et al. Bayesian nonparametric federated learning of neural
    networks. ICML 2019.
  """
  pools = splitting.class_pools(labels, seed)
  rng = seeds.generator(seed, 'dirichlet')

  def mixes():
    return np.exp(splitting.log_mixes(rng, alpha, len(pools), num_clients))

  return splitting.deal_mixes(pools, mixes, num_clients, min_examples)
