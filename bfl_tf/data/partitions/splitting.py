"""Helpers of partitions: pools of classes, and held-out server examples."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bfl_tf import seeds
from bfl_tf.declare.settings import Setting

CLASSES_PER_CLIENT = Setting('Number of classes per client.', ge=1)
MAX_DRAWS = 1000


def checked(
  parts: Iterable, num_examples: int, num_clients: int, overlap: bool = False
) -> list[np.ndarray]:
  """Validates the index arrays of a partition and returns them as int32."""
  arrays = [np.asarray(part) for part in parts]
  dealt = np.concatenate([*arrays, []])
  dealt = np.unique(dealt) if overlap else np.sort(dealt)
  each = len(arrays) == num_clients and all(part.size for part in arrays)
  if not each or not np.array_equal(dealt, np.arange(num_examples)):
    raise ValueError(
      f'must return an array of indices for each of {num_clients} clients, '
      f'which is not empty, and assign each of {num_examples} examples to one '
      'client, unless the function has the attribute overlap = True.'
    )
  return [part.astype(np.int32) for part in arrays]


def class_pools(labels: np.ndarray, seed: int) -> list[np.ndarray]:
  """Returns the shuffled indices of each observed class, in class order."""
  rng = seeds.generator(seed, 'class_pools')
  classes = np.unique(labels)
  return [rng.permutation(np.flatnonzero(labels == c)) for c in classes]


def deal(pools: Sequence[np.ndarray], shares: np.ndarray) -> list[np.ndarray]:
  """Cuts each class's pool into the shares `[num_clients, num_pools]`."""
  ends = np.cumsum(shares, axis=0)[:-1]
  cuts = [np.split(pool, ends[:, c]) for c, pool in enumerate(pools)]
  return [sorted_indices(np.concatenate(parts)) for parts in zip(*cuts)]


def deal_mixes(
  pools: Sequence[np.ndarray],
  draw: Callable[[], np.ndarray],
  num_clients: int,
  min_examples: int,
) -> list[np.ndarray]:
  """Cuts each class's pool by proportions over clients.

  The proportions `[num_pools, num_clients]`, whose rows add up to 1, are drawn
  until each client has `min_examples`, at most 1000 times.
  """
  sizes = np.array([pool.size for pool in pools])
  enough = num_clients * min_examples <= sizes.sum()
  for _ in range(MAX_DRAWS if enough else 0):
    ends = np.rint(np.cumsum(draw(), axis=1) * sizes[:, None]).astype(np.int64)
    ends[:, -1] = sizes
    shares = np.diff(ends, axis=1, prepend=0).T
    if shares.sum(axis=1).min() >= min_examples:
      return deal(pools, shares)
  raise ValueError(
    f'none of {MAX_DRAWS} random partitions of {sizes.sum()} examples gave '
    f'each of num_clients={num_clients} at least min_examples={min_examples} '
    'examples: lower one of them, or choose a less skewed partition.'
  )


def sorted_indices(indices: np.ndarray) -> np.ndarray:
  return np.sort(indices).astype(np.int32)


def log_mixes(
  rng: np.random.Generator, alpha: float, num_mixes: int, size: int
) -> np.ndarray:
  """Draws log probabilities `[num_mixes, size]` ~ Dirichlet(alpha).

  Gamma draws for a small alpha underflow to zeros. The logs use Gamma(alpha) =
  Gamma(alpha + 1) * U^(1 / alpha).
  """
  shape = (num_mixes, size)
  log_gamma = np.log(rng.standard_gamma(alpha + 1.0, shape))
  log_gamma += np.log1p(-rng.random(shape)) / alpha
  return log_gamma - np.logaddexp.reduce(log_gamma, axis=1, keepdims=True)


def counts(
  labels: np.ndarray, parts: Sequence[np.ndarray], num_classes: int
) -> np.ndarray:
  """Returns the number of examples per client and class."""
  rows = [np.bincount(labels[part], minlength=num_classes) for part in parts]
  return np.array(rows, np.int64).reshape(len(rows), num_classes)


def hold_out(
  labels: np.ndarray, *, num_examples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
  """Takes class-balanced examples for the server (`--num_server_examples`).

  Returns their sorted indices and those of the rest. Class counts differ by at
  most 1, but a class with fewer examples is held out completely.
  """
  if num_examples > labels.size:
    raise ValueError(
      f'--num_server_examples={num_examples} exceeds the {labels.size} '
      'training examples.'
    )
  rng = seeds.generator(seed, 'hold_out')
  sizes = np.bincount(labels)
  quotas = _even_quotas(sizes, num_examples, rng)
  shuffled = rng.permutation(labels.size)
  ordered = shuffled[np.argsort(labels[shuffled], kind='stable')]
  rank = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
  held_out = rank < np.repeat(quotas, sizes)
  return sorted_indices(ordered[held_out]), sorted_indices(ordered[~held_out])


def _even_quotas(sizes, total, rng):
  quotas = np.zeros_like(sizes)
  while (left := total - quotas.sum()) > 0:
    open_ = np.flatnonzero(quotas < sizes)
    share = left // open_.size
    if share == 0:
      quotas[rng.choice(open_, left, replace=False)] += 1
    else:
      quotas[open_] += np.minimum(share, (sizes - quotas)[open_])
  return quotas
