"""Class mixes of clients, scaled to given client sizes and class totals.

The result is a table of clients by classes. Its row sums are the client sizes,
and its column sums are the class totals.
"""

from collections.abc import Sequence

import numpy as np
from scipy import optimize, sparse, special

# A larger spread of log mixes does not change the scaled mixes, which are then
# the cheapest transport. The bound keeps potentials within double precision.
_MAX_SPREAD = 1e5
# Sufficient for an error of 1e-8 if a Dirichlet's alpha is at least 0.01. For
# tiny alphas, `_repair` moved up to 0.5 % of the examples.
_MAX_STEPS = 1000


def equal_sizes(
  num_examples: int, num_clients: int, rng: np.random.Generator
) -> np.ndarray:
  """Returns sizes `[num_clients]` that differ by at most 1, at random."""
  sizes = np.full(num_clients, num_examples // num_clients)
  sizes[rng.permutation(num_clients)[: num_examples % num_clients]] += 1
  return sizes


def shares(
  log_mixes: np.ndarray, sizes: np.ndarray, pools: Sequence[np.ndarray]
) -> np.ndarray:
  """Returns the number of examples per client and class.

  The rows and columns of the mixes `[num_clients, num_classes]` are scaled
  until they add up to the sizes of clients and of the classes' pools. The
  result is rounded to integers with the same sums.
  """
  totals = np.array([pool.size for pool in pools])
  return _round(_balance(log_mixes, sizes, totals))


def _balance(log_mixes, sizes, totals):
  """Scales rows and columns until they add up to `sizes` and `totals`.

  Uses Sinkhorn's iteration in logs, which is slow for the widely spread logs of
  small alphas. It therefore starts from tempered mixes and halves the
  temperature.
  """
  spread = np.ptp(log_mixes)
  log_mixes = log_mixes * min(1.0, _MAX_SPREAD / max(spread, 1.0))
  log_sizes, log_totals = np.log(sizes)[:, None], np.log(totals)
  halvings = max(0, int(np.ceil(np.log2(max(np.ptp(log_mixes), 1.0) / 8))))
  rows = np.zeros_like(log_sizes)
  for power in range(halvings, -1, -1):
    tempered = log_mixes / 2.0**power
    for _ in range(_MAX_STEPS):
      columns = log_totals - special.logsumexp(tempered + rows, axis=0)
      rows = log_sizes - special.logsumexp(
        tempered + columns, axis=1, keepdims=True
      )
      scaled = np.exp(tempered + rows + columns)
      error = np.abs(scaled.sum(axis=0) - totals).sum()
      if error < (1e-9 if power == 0 else 1e-2) * totals.sum():
        break
    rows = 2 * rows
  return _repair(scaled, sizes, totals)


def _repair(scaled, sizes, totals):
  """Makes both sums exact (Altschuler et al. 2017, Algorithm 2)."""
  scaled = scaled * np.minimum(1, totals / scaled.sum(axis=0))
  row_gap = np.maximum(sizes - scaled.sum(axis=1), 0)
  column_gap = np.maximum(totals - scaled.sum(axis=0), 0)
  return scaled + np.outer(row_gap, column_gap) / max(row_gap.sum(), 1e-300)


def _round(table):
  """Rounds each entry up or down, keeping the sums of rows and columns.

  Solves a transport problem over the fractions, whose vertices are integers.
  """
  low = np.floor(table + 1e-9).astype(np.int64)
  fraction = np.maximum(table - low, 0)
  num_rows, num_columns = table.shape
  sums = sparse.vstack(
    [
      sparse.kron(sparse.eye(num_rows), np.ones((1, num_columns))),
      sparse.kron(np.ones((1, num_rows)), sparse.eye(num_columns)),
    ]
  )
  wanted = np.concatenate(
    [
      np.rint(table.sum(axis=1)) - low.sum(axis=1),
      np.rint(table.sum(axis=0)) - low.sum(axis=0),
    ]
  )
  result = optimize.linprog(
    -fraction.ravel(), A_eq=sums, b_eq=wanted, bounds=(0, 1), method='highs-ds'
  )
  return low + np.rint(result.x).astype(np.int64).reshape(table.shape)
