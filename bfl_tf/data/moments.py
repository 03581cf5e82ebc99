"""Means and spreads from sums that each site makes of its own examples.

A site sends how many values it has, their mean and the sum of their squared
distances to it, never an example; two such sums merge into those of both
(Chan et al. 1979). NaN is no value. All in float64, and E[x^2] - E[x]^2 is
never taken.
"""

from collections.abc import Iterable
import functools
from typing import NamedTuple

import numpy as np

_CHUNK = 2**20  # Elements held in float64 at a time.
_ROWS = 2**10  # Of a table, likewise.


class Moments(NamedTuple):
  """Count, sum and squares of each channel or feature, as a site sends them.

  Attributes:
    size: `[channels]` int64, values that it has.
    mean: `[channels]` float64; 0 where there is no value.
    scatter: `[channels]` float64, sum of squared distances to the mean.
  """

  size: np.ndarray
  mean: np.ndarray
  scatter: np.ndarray

  @classmethod
  def of(cls, x: np.ndarray) -> 'Moments':
    """Returns the moments over all but the last axis of a site's examples.

    Both passes subtract the first value: a constant feature has exactly 0.
    """
    channels = x.shape[-1]
    flat = x.reshape(-1, channels)
    is_table = x.ndim == 2  # Images have no gaps, and are large.
    known = ~np.isnan(x) if is_table else np.ones_like(flat[:1], bool)
    size = known.sum(axis=0) * (1 if is_table else len(flat))
    first = flat[known.argmax(axis=0), np.arange(channels)].astype(np.float64)
    first = np.where(size, first, 0.0)
    rows = _ROWS if is_table else max(1, _CHUNK // x[0].size)
    starts = range(0, len(x), rows)

    def add(chunk):
      # Row after row: no bit of a column depends on those beside it.
      return np.cumsum(np.nan_to_num(chunk), axis=0)[-1]

    def total(function):
      chunks = (x[i : i + rows].astype(np.float64) - first for i in starts)
      summed = sum(
        add(function(chunk)) if is_table else function(chunk).sum(axis=0)
        for chunk in chunks
      )
      return summed.reshape(-1, channels).sum(axis=0)

    mean = total(lambda chunk: chunk) / np.maximum(size, 1)
    scatter = total(lambda chunk: np.square(chunk - mean))
    return cls(size, first + mean, scatter)

  def merge(self, other: 'Moments') -> 'Moments':
    """Returns the moments of both sites' values together."""
    count = self.size + other.size
    delta = other.mean - self.mean
    share = other.size / np.maximum(count, 1)
    scatter = self.scatter + other.scatter
    return Moments(
      count,
      self.mean + share * delta,
      scatter + np.square(delta) * (self.size * share),
    )

  @property
  def std(self) -> np.ndarray:
    """Standard deviation `[channels]`; 1 where a feature is constant."""
    std = np.sqrt(self.scatter / np.maximum(self.size, 1))
    return np.where(std > 0, std, 1)


def merged(sites: Iterable[np.ndarray]) -> Moments:
  """Merges the sums of sites' examples, in their order."""
  return functools.reduce(Moments.merge, map(Moments.of, sites))
