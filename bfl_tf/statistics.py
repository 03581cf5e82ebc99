"""Statistics over the clients' updates, computed on the server.

A pooling rule, a moment and a table of stored updates are all a *Statistic*:

  accumulate(update, weight, reference) -> sums    sums of one client
  merge(sums, sums) -> sums                        in any order or tree
  finalize(sums, reference) -> (result, info)

`weight` is any non-negative number. `finalize` normalizes, so that an update
can be added before the weights of other clients are known. `reference` is the
broadcast model.

Sums are pairs of float64, a value and its rounding errors, added by TwoSum.
After rounding to float32, the result does not depend on the order of arrival.

References:
  D. E. Knuth. The Art of Computer Programming, vol. 2, section 4.2.2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from bfl_tf import weights

# Number of elements per pass, so that temporaries stay in the cache.
_CHUNK = 8192


class ClientUpdate(NamedTuple):
  """The result of one client's training in a round.

  Attributes:
    num_examples: Number of examples that it trained on.
    extras: Additional vectors for the server, by client part.
    trace: A `training.Trace` with `steps`, `sum_rates` and `loss`.
    memory: Memory that the client keeps if the update is accepted, by client
      part. Stages and rules do not read it.
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
  """Accumulated sums of a statistic.

  Attributes:
    vectors: float64 arrays `[1 or 2, ...]` by name: a sum and, after a merge,
      its rounding errors. `weight` is the sum of the weights.
    tables: Entries by table name and client, for results that are not sums.
  """

  max_weight: float
  vectors: dict[str, np.ndarray]
  tables: dict[str, dict[int, Any]]

  def value(self, name: str) -> np.ndarray:
    """The sum `name`, rounded to float64."""
    return self.vectors[name].sum(0)


class Statistic(Protocol):
  """A frozen dataclass; equal statistics are computed once."""

  def accumulate(
    self, update: ClientUpdate, weight: float, reference: weights.Weights
  ) -> Sums:
    """Returns the sums of one client."""

  def finalize(
    self, sums: Sums, reference: weights.Weights
  ) -> tuple[Any, dict[str, float]]:
    """Returns the result, and columns of `metrics.csv`."""


@dataclasses.dataclass(frozen=True)
class Total:
  """Sums over clients of the terms that a function computes per update.

  The result contains the sums by name, including `weight`.

  Attributes:
    terms: Module-level function with the arguments of `accumulate`.
  """

  terms: Callable[[ClientUpdate, float, Any], Mapping[str, Any]]

  def __str__(self) -> str:
    return self.terms.__qualname__

  def accumulate(self, update, weight, reference) -> Sums:
    return single(weight, self.terms(update, weight, reference))

  def finalize(self, sums, reference) -> tuple[dict[str, np.ndarray], dict]:
    return {name: sums.value(name) for name in sums.vectors}, {}


def single(
  weight: float,
  vectors: Mapping[str, np.ndarray],
  tables: Mapping[str, dict[int, Any]] | None = None,
) -> Sums:
  """Returns the sums of one client.

  Args:
    vectors: float64 terms by name, already weighted where needed.
  """
  terms = {'weight': np.float64(weight), **vectors}
  return Sums(
    max_weight=weight,
    vectors={
      k: np.asarray(v, np.float64)[np.newaxis] for k, v in terms.items()
    },
    tables=dict(tables or {}),
  )


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


def reduced(
  statistic: Statistic,
  weighed: Iterable[tuple[ClientUpdate, float]],
  reference: weights.Weights,
) -> tuple[Any, dict[str, float]]:
  """Returns a statistic of updates and weights, which are read one at a time.

  Raises:
    TypeError: There are no updates.
  """
  shares = (statistic.accumulate(u, w, reference) for u, w in weighed)
  return statistic.finalize(functools.reduce(merge, shares), reference)


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
