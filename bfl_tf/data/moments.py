"""Means and standard deviations, merged from the moments of each site.

A site sends the number of its values, their mean and their sum of squared
deviations, but no examples. The moments of two sites merge into those of both
(Chan et al. 1979). NaN values are skipped. All moments are float64 and avoid
the cancellation in E[x^2] - E[x]^2.
"""

from collections.abc import Iterable
import functools
from typing import NamedTuple

import numpy as np

_CHUNK = 2**20  # Elements held in float64 at a time.
_ROWS = 2**10  # Rows of a table held in float64 at a time.


class Moments(NamedTuple):
  """Count, mean and squared deviations of each channel or feature.

  Attributes:
    size: `[channels]` int64, number of values.
    mean: `[channels]` float64; 0 if there is no value.
    scatter: `[channels]` float64, sum of squared deviations from the mean.
  """

  size: np.ndarray
  mean: np.ndarray
  scatter: np.ndarray

  @classmethod
  def of(cls, x: np.ndarray) -> 'Moments':
    """Returns the moments over all but the last axis of a site's examples.

    Both passes subtract the first value, so that a constant feature has scatter
    0 exactly.
    """
    channels = x.shape[-1]
    flat = x.reshape(-1, channels)
    is_table = x.ndim == 2  # Images have no missing values, and are large.
    known = ~np.isnan(x) if is_table else np.ones_like(flat[:1], bool)
    size = known.sum(axis=0) * (1 if is_table else len(flat))
    first = flat[known.argmax(axis=0), np.arange(channels)].astype(np.float64)
    first = np.where(size, first, 0.0)
    rows = _ROWS if is_table else max(1, _CHUNK // x[0].size)
    starts = range(0, len(x), rows)

    def add(chunk):
      # Sums row by row, so that no bit of a column depends on other columns.
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
  """Returns the merged moments of the sites' examples, in their order."""
  return functools.reduce(Moments.merge, map(Moments.of, sites))
