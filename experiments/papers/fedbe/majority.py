"""Most of a client's examples are of one class (FedBE, Figure 1).

Chen & Chao 2021, section 3.3: three clients of equal size, each with 80 % of
its data from one class and 20 % from the other two.
"""

from typing import Annotated

import numpy as np

from bfl_tf import seeds
from bfl_tf.data.partitions import splitting, transport
from bfl_tf.declare.settings import Setting


def majority(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  major_fraction: Annotated[
    float,
    Setting(
      "Fraction of a client's examples that belong to its major class.",
      gt=0,
      lt=1,
    ),
  ] = 0.8,
) -> list[np.ndarray]:
  """Gives clients of equal size one major class each and the others evenly.

  Client k's major class is class k modulo the number of classes. If classes
  have equal sizes and their number divides `num_clients`, the major class is
  `major_fraction` of the client's examples, up to rounding. Otherwise the mixes
  are scaled to the class totals, as in `dirichlet` with equal sizes.
  """
  pools = splitting.class_pools(labels, seed)
  minor_fraction = (1 - major_fraction) / max(1, len(pools) - 1)
  mixes = np.full((num_clients, len(pools)), minor_fraction)
  clients = np.arange(num_clients)
  mixes[clients, clients % len(pools)] = major_fraction
  rng = seeds.generator(seed, 'majority')
  sizes = transport.equal_sizes(labels.size, num_clients, rng)
  return splitting.deal(pools, transport.shares(np.log(mixes), sizes, pools))
