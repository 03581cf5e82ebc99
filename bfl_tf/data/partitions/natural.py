"""One client per site, as recorded in the data."""

import numpy as np

from bfl_tf.data.partitions import splitting


def natural(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  client_ids: np.ndarray,
) -> list[np.ndarray]:
  """Gives each client the examples of one site, in order of the site names.

  There are as many clients as sites. The seed has no effect.

  Args:
    client_ids: Site of each example, `[num_examples]`.
  """
  sites, owner, sizes = np.unique(
    np.asarray(client_ids), return_inverse=True, return_counts=True
  )
  if sites.size != num_clients:
    raise ValueError(
      'the natural partition has one client per site: set '
      f'--num_clients={sites.size} in place of {num_clients}.'
    )
  order = np.argsort(owner, kind='stable')
  parts = np.split(order, np.cumsum(sizes)[:-1])
  return [splitting.sorted_indices(part) for part in parts]
