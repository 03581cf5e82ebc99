"""Sums over the clients' updates of the terms of a server part.

`collected` gives the sums of one client, `merge` adds two sums, in any order or
tree, and `values` gives what `Server.step` receives. A weight is any
non-negative number, and `step` normalizes, so that an update can be added
before the weights of other clients are known.

Sums are pairs of float64, a value and its rounding errors, added by TwoSum.
After rounding to float32, the result does not depend on the order of arrival.

References:
  D. E. Knuth. The Art of Computer Programming, vol. 2, section 4.2.2.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import parts, weights

# Number of elements per pass, so that temporaries stay in the cache.
_CHUNK = 8192


class ClientUpdate(NamedTuple):
  """The result of one client's training in a round.

  Attributes:
    extras: `Sent.extra` of client parts, by name of the part.
    trace: A `training.Trace` with `steps`, `sum_rates` and `loss`.
    memory: Memory that the client keeps if the update is accepted, by client
      part. Server parts do not read it.
    rates: `[steps]`, learning rate of each step, which the server computes.
  """

  client_id: int
  num_examples: int
  model: weights.Weights
  extras: Mapping[str, Any] = {}
  trace: Any = None
  memory: Mapping[str, Any] = {}
  rates: Any = ()

  @property
  def num_bytes(self) -> int:
    """Size of the message in bytes; the memory is not part of it."""
    extras = sum(np.asarray(extra).nbytes for extra in self.extras.values())
    return self.model.num_bytes + extras


class Sums(NamedTuple):
  """Sums of the terms of a server part.

  Attributes:
    vectors: float64 arrays `[1 or 2, ...]` by name: a sum and, after a merge,
      its rounding errors. `weight` is the sum of the weights, `count` the
      number of clients.
    tables: Values of each `parts.Keep` term, by name and client.
  """

  max_weight: float
  vectors: dict[str, np.ndarray]
  tables: dict[str, dict[int, Any]]


def collected(
  part: parts.Server,
  update: ClientUpdate,
  weight: float,
  broadcast: weights.Weights,
) -> Sums:
  """Returns the sums of one client."""
  terms: dict[str, Any] = {'weight': weight, 'count': 1.0}
  terms |= part.terms(update, weight, broadcast)
  values = {k: v.value for k, v in terms.items() if isinstance(v, parts.Keep)}
  return Sums(
    max_weight=weight,
    vectors={
      name: np.asarray(term, np.float64)[np.newaxis]
      for name, term in terms.items()
      if name not in values
    },
    tables={name: {update.client_id: value} for name, value in values.items()},
  )


def values(sums: Sums) -> dict[str, Any]:
  """Returns the argument `sums` of `Server.step`."""
  return {
    'max_weight': sums.max_weight,
    **{name: pair.sum(0) for name, pair in sums.vectors.items()},
    **{
      name: [table[client] for client in sorted(table)]
      for name, table in sums.tables.items()
    },
  }


def merge(into: Sums, other: Sums) -> Sums:
  """Adds `other` to `into`, whose arrays are overwritten.

  Commutative and associative up to rounding errors of about 1e-32. A sum that
  one argument lacks is 0, and a missing table has no entries.
  """
  vectors = dict(into.vectors)
  for name, pair in other.vectors.items():
    vectors[name] = (
      _add(vectors[name], pair) if name in vectors else pair.copy()
    )
  tables = {
    name: {**into.tables.get(name, {}), **other.tables.get(name, {})}
    for name in {**into.tables, **other.tables}
  }
  return Sums(max(into.max_weight, other.max_weight), vectors, tables)


def chunks(size: int) -> Iterator[slice]:
  """Yields slices that cover `range(size)` and fit the cache."""
  for start in range(0, size, _CHUNK):
    yield slice(start, start + _CHUNK)


def _add(into: np.ndarray, other: np.ndarray) -> np.ndarray:
  if len(into) == 1:
    into = np.concatenate([into, np.zeros_like(into)])
  # `reshape` would copy a transposed array, and the sum would be lost.
  into = np.ascontiguousarray(into)
  high, low = into.reshape(2, -1)
  flat = other.reshape(len(other), high.size)
  work = np.empty([3, _CHUNK])
  for part in chunks(high.size):
    a, b = high[part], flat[0, part]
    total, error, spare = work[:, : a.size]
    # Knuth's sum: `error` is the exact rounding error of `total`.
    np.add(a, b, out=total)
    np.subtract(total, a, out=error)
    np.subtract(total, error, out=spare)
    np.subtract(a, spare, out=spare)
    np.subtract(b, error, out=error)
    error += spare
    low[part] += error
    if len(flat) == 2:
      low[part] += flat[1, part]
    a[:] = total
  return into
