"""One client per site, as recorded in the data."""

import numpy as np

from bfl_tf.data import columns
from bfl_tf.data.partitions import splitting


def natural(
  labels: np.ndarray, *, num_clients: int, seed: int, client_ids: np.ndarray
) -> list[np.ndarray]:
  """Gives each client the examples of one site, in order of the site names.

  There are as many clients as sites. The seed has no effect.
  """
  sites = columns.by_site(client_ids)
  if len(sites) != num_clients:
    raise ValueError(
      'there is one client per site: set '
      f'--num_clients={len(sites)} in place of {num_clients}.'
    )
  return [splitting.sorted_indices(indices) for _, indices in sites]
