"""Clients of unequal sizes, each interested in one class (FL-SWAG, alg. 4).

Makni 2022, section 7: sizes are drawn and sorted; client m is 1/p more
interested in class m mod C than in the others, and each class is split by size
times interest. Its p is not printed; the released code has 0.25.
"""

from typing import Annotated

import numpy as np

from bfl_tf import registry, seeds
from bfl_tf.partitions import splitting
from bfl_tf.settings import Setting

SIZES = ('uniform', 'exponential', 'equal')


def interest(
  labels: np.ndarray,
  *,
  num_clients: int,
  seed: int,
  proportion: Annotated[
    float, Setting('p: of a class without interest.', above=0)
  ] = 0.25,
  sizes: Annotated[
    str, Setting("What clients' sizes are drawn from:", choices=SIZES)
  ] = 'uniform',
  min_examples: Annotated[
    int, Setting('Least examples of a client.', least=1)
  ] = 10,
) -> list[np.ndarray]:
  """Splits each class by the clients' sizes and interests.

  Args:
    num_clients: how many parts; the last are the largest.
    proportion: of a client's interest in its own class, what it has in each
      other; 1 for none.
    sizes: 'uniform' in (0, 1), 'exponential', or 'equal'.
    min_examples: redraw, at most 1000 times, until each client has that many.

  Raises:
    ValueError: `proportion` is not positive, or no draw gave every client
      `min_examples`.

  References:
    M. Makni. Deriving FL-SWAG as a one-shot method. 2022, algorithm 4.
  """
  labels = splitting.check(labels, num_clients, seed)
  splitting.check_integer('min_examples', min_examples)
  registry.check_choice('interest.sizes', sizes, SIZES)
  if not 0 < proportion < np.inf:
    raise ValueError(f'proportion must be positive, got {proportion!r}.')
  pools = splitting.class_pools(labels, seed)
  clients = np.arange(num_clients)
  interests = np.full((len(pools), num_clients), float(proportion))
  interests[clients % len(pools), clients] = 1.0
  rng = seeds.generator(seed, 'interest')

  def mixes():
    shares = np.sort(_draw(sizes, rng, num_clients)) * interests
    return shares / shares.sum(1, keepdims=True)

  found = splitting.deal_mixes(pools, mixes, num_clients, min_examples)
  if found is None:
    raise ValueError(
      f'sizes={sizes} with num_clients={num_clients} left a client with fewer '
      f'than min_examples={min_examples} in every one of '
      f'{splitting.MAX_DRAWS} draws of {labels.size} examples: lower one.'
    )
  return found


def _draw(sizes, rng, count):
  if sizes == 'equal':
    return np.ones(count)
  return (
    rng.random(count) if sizes == 'uniform' else rng.exponential(size=count)
  )
