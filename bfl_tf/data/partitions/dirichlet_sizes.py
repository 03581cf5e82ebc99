"""Dirichlet client sizes times Dirichlet class proportions."""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting
from bfl_tf.declare.settings import Setting


def dirichlet_sizes(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  alpha: Annotated[float, splitting.ALPHA] = 0.5,
  size_alpha: Annotated[
    float, Setting('Concentration of the client sizes; small is unequal.', gt=0)
  ] = 1.0,
  min_examples: Annotated[int, splitting.MIN_EXAMPLES] = 1,
) -> list[np.ndarray]:
  """Cuts each class in proportion to client size times class proportion.

  Sizes ~ Dirichlet(size_alpha) over clients; the class proportions of each
  client ~ Dirichlet(alpha). Their products are normalized for each class. Both
  are drawn again, at most 1000 times, until each client has `min_examples`.

  References:
    T. Moellenhoff et al. Federated ADMM from Bayesian duality. ICLR 2026.
    `data_generators.py` of its public code.
  """
  pools = splitting.class_pools(labels, seed)
  rng = seeds.generator(seed, 'dirichlet_sizes')

  def mixes():
    sizes = splitting.log_mixes(rng, size_alpha, 1, num_clients)
    classes = splitting.log_mixes(rng, alpha, num_clients, len(pools))
    logs = sizes + classes.T
    return np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))

  return splitting.deal_mixes(pools, mixes, num_clients, min_examples)
