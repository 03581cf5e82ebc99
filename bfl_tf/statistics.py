"""The one contract between clients and server.

Whatever the server learns from a round is a *Statistic* over the clients'
updates: a pooling rule, a moment, a table of kept updates.

  accumulate(update, weight, reference) -> sums    one client's share
  merge(sums, sums) -> sums                        any order, any tree
  finalize(sums, reference) -> (result, info)

`weight` is any number not below 0 and `finalize` normalises, so that a client's
weight need not be known against the others' when it arrives. `reference` is
what was broadcast.

Sums are pairs of float64, a value and its rounding error, added by TwoSum: the
order of arrival then changes nothing that survives the rounding to float32.

References:
  D. E. Knuth. The Art of Computer Programming, vol. 2, section 4.2.2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from bfl_tf import weights

# Temporaries of a pass over a vector: this many elements stay in the cache.
_CHUNK = 8192


class ClientUpdate(NamedTuple):
  """The result of one client's training in a round.

  Attributes:
    client_id: Number of the client.
    num_examples: Number of examples that it trained on.
    model: Trained weights.
    extras: Further vectors to the server, by client part.
    trace: A `training.Trace`: steps, sum of learning rates, mean loss.
    memory: Memory that the client keeps if the update is accepted, by client
      part. Stages and rules do not read it.
  """

  client_id: int
  num_examples: int
  model: weights.Weights
  extras: Mapping[str, Any] = {}
  trace: Any = None
  memory: Mapping[str, Any] = {}

  @property
  def num_bytes(self) -> int:
    """Size of the message in bytes; the memory is not part of it."""
    extras = sum(np.asarray(extra).nbytes for extra in self.extras.values())
    return self.model.num_bytes + extras


class Sums(NamedTuple):
  """Accumulated sums of a statistic.

  Attributes:
    max_weight: the largest weight.
    vectors: float64 arrays `[1 or 2, ...]`: a sum and, once something was
      merged in, its rounding error. Has `weight`, the weights' sum.
    tables: Entries by table name and client, for results that are no sums.
  """

  max_weight: float
  vectors: dict[str, np.ndarray]
  tables: dict[str, dict[int, Any]]

  def value(self, name: str) -> np.ndarray:
    """The sum `name`, rounded to float64."""
    return self.vectors[name].sum(0)


class Statistic(Protocol):
  """A frozen dataclass; equal ones are reduced once."""

  def accumulate(
    self,
    update: ClientUpdate,
    weight: float,
    reference: weights.Weights,
  ) -> Sums:
    """Returns one client's share."""

  def finalize(
    self, sums: Sums, reference: weights.Weights
  ) -> tuple[Any, dict[str, float]]:
    """Returns the statistic, and counts for the columns of `metrics.csv`."""


@dataclasses.dataclass(frozen=True)
class Total:
  """The sums over clients of what a function makes of each update.

  The result holds them by name, `weight` among them.

  Attributes:
    terms: a function of a module, with the arguments of `accumulate`.
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
    weight: Weight of the client.
    vectors: float64 terms by name, already multiplied as they need be.
    tables: entries by table name and client id.
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
  """Adds `other` to `into`, whose memory is reused: keep no hold on it.

  Commutative and associative up to the pairs' rounding, about 1e-32. What one
  of them does not name is 0 there, or has no entries.
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
  return Sums(
    max(into.max_weight, other.max_weight),
    vectors,
    tables,
  )


def reduced(
  statistic: Statistic,
  weighed: Iterable[tuple[ClientUpdate, float]],
  reference: weights.Weights,
) -> tuple[Any, dict[str, float]]:
  """Returns what `finalize` does of updates and their weights, one at a time.

  Raises:
    TypeError: there are none.
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
  # Of a transpose what follows would be a copy, and the sum lost.
  into = np.ascontiguousarray(into)
  high, low = into.reshape(2, -1)
  flat = other.reshape(len(other), high.size)
  for part in chunks(high.size):
    a, b = high[part], flat[0, part]
    total, error = two_sum(a, b)
    error += low[part]
    if len(flat) == 2:
      error += flat[1, part]
    high[part], low[part] = two_sum(total, error)
  return into


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns fl(a + b) and what the rounding left out, exactly; of float64."""
  total = a + b
  b_rounded = total - a
  error = a - (total - b_rounded)
  error += b - b_rounded
  return total, error
