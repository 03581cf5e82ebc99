"""Clients of equal size with wanted class mixes, as near as classes allow.

A table of clients by classes whose sums are given: the class totals, since
every example goes somewhere, and equal sizes.
"""

import numpy as np
from scipy import optimize, sparse, special

# Beyond this spread of log mixes, the normalised mixes do not change: they are
# the cheapest transport. It keeps potentials well within double precision.
_MAX_SPREAD = 1e5
# Enough for 1e-8 at a Dirichlet's alpha = 0.01 and up; at tiny alphas `_repair`
# was seen to move 0.5 % of the examples.
_MAX_STEPS = 1000


def equal_sizes(
  num_examples: int, num_clients: int, rng: np.random.Generator
) -> np.ndarray:
  """Returns sizes `[num_clients]` that differ by at most 1, at random."""
  sizes = np.full(num_clients, num_examples // num_clients)
  sizes[rng.permutation(num_clients)[: num_examples % num_clients]] += 1
  return sizes


def shares(
  log_mixes: np.ndarray, sizes: np.ndarray, totals: np.ndarray
) -> np.ndarray:
  """Returns how many of each class a client gets, `[num_clients, num_classes]`.

  The mixes are scaled by rows and columns until both sums hold, then rounded
  to integers that keep them.

  Args:
    log_mixes: log proportions `[num_clients, num_classes]`, finite.
    sizes: Number of examples per client; their sum is that of the totals.
    totals: examples of each class, positive.
  """
  return _round(_balance(log_mixes, sizes, totals))


def _balance(log_mixes, sizes, totals):
  """Scales rows and columns until they add up to `sizes` and `totals`.

  Sinkhorn's iteration in logs. Small alphas spread the logs so far that it
  would crawl: it starts from tempered mixes and halves the temperature.
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

  A transport problem over the fractions: its vertices are integers.
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
  if not result.success:
    raise RuntimeError(f'Rounding the class mixes failed: {result.message}')
  return low + np.rint(result.x).astype(np.int64).reshape(table.shape)
