"""A client a site: whose each example is, as the data say it."""

import numpy as np

from bfl_tf.data.partitions import splitting


def natural(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  client_ids: np.ndarray,
) -> list[np.ndarray]:
  """Gives each site its own examples; sites go by the order of their names.

  There are as many clients as sites; the seed changes nothing.

  Args:
    client_ids: `[num_examples]`, the site of each.
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
