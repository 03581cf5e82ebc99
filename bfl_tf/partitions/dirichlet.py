"""Class proportions over clients from a Dirichlet (Yurochkin et al. 2019).

Sizes differ between clients. The paper's text is followed; its released code
also closes a client that has reached the mean size.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.partitions import splitting
from bfl_tf.settings import Setting


def dirichlet(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  alpha: Annotated[float, splitting.ALPHA] = 0.5,
  min_examples: Annotated[
    int, Setting('Least examples of a client.', least=1)
  ] = 10,
) -> list[np.ndarray]:
  """Spreads each class over the clients by proportions ~ Dirichlet(alpha).

  Args:
    alpha: concentration; small is heterogeneous.
    min_examples: redraw, at most 1000 times, until each client has that many.

  Raises:
    ValueError: no draw gave every client `min_examples`.

  References:
    M. Yurochkin et al. Bayesian nonparametric federated learning of neural
    networks. ICML 2019.
  """
  labels = splitting.check(labels, num_clients, seed)
  splitting.check_alpha(alpha)
  splitting.check_integer('min_examples', min_examples)
  pools = splitting.class_pools(labels, seed)
  rng = seeds.generator(seed, 'dirichlet')

  def mixes():
    return np.exp(splitting.log_mixes(rng, alpha, len(pools), num_clients))

  found = splitting.deal_mixes(pools, mixes, num_clients, min_examples)
  if found is not None:
    return found
  raise ValueError(
    f'alpha={alpha} with num_clients={num_clients} left a client with fewer '
    f'than min_examples={min_examples} in every one of {splitting.MAX_DRAWS} '
    f'draws of {labels.size} examples: raise alpha or lower the others.'
  )
