"""Data sets as arrays of examples."""

from collections.abc import Callable, Iterable
import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from bfl_tf.data import encoding, table_format
from bfl_tf.data import moments as moments_lib


class Split(NamedTuple):
  """Examples as columns.

  `x` are uint8 or float32 images `[num_examples, height, width, channels]`, or
  float32 features `[num_examples, num_features]`; a missing number of a table
  is NaN. `y` are int32 classes or float32 numbers, `[num_examples]`. `ids` is
  the site of each example, and `groups` the number of its group, such as a
  person, `[num_examples]`; a group has one site, and is never divided.
  """

  x: np.ndarray
  y: np.ndarray
  ids: np.ndarray | None = None
  groups: np.ndarray | None = None

  def take(self, indices: np.ndarray | slice) -> 'Split':
    """Returns the examples with these indices."""
    ids, groups = (
      None if each is None else np.asarray(each)[indices] for each in self[2:]
    )
    return Split(self.x[indices], self.y[indices], ids, groups)

  @property
  def is_numeric(self) -> bool:
    """Whether the labels are numbers."""
    return self.y.dtype.kind == 'f'

  @property
  def strata(self) -> np.ndarray:
    """Classes `[num_examples]`; numbers are one class."""
    return np.zeros(self.y.shape, np.int32) if self.is_numeric else self.y

  @property
  def sites(self) -> list[tuple[str, np.ndarray]]:
    """Name of each site and sorted indices of its examples, in name order."""
    return [] if self.ids is None else by_site(self.ids)


def whole_groups(
  groups: np.ndarray | None,
  divide: Callable[[np.ndarray | slice], Iterable[np.ndarray]],
) -> list[np.ndarray]:
  """Returns the sorted indices of examples in each part, with whole groups.

  `divide` receives the indices of one example for each group, and returns the
  places of the groups in each part. Without groups, each example is its own.
  """
  if groups is None:
    return [*divide(slice(None))]
  _, first, group = np.unique(groups, return_index=True, return_inverse=True)
  return [np.flatnonzero(np.isin(group, part)) for part in divide(first)]


def by_site(ids: np.ndarray) -> list[tuple[str, np.ndarray]]:
  """Returns `Split.sites` of the site of each example, `[num_examples]`."""
  names, owner, sizes = np.unique(
    np.asarray(ids), return_inverse=True, return_counts=True
  )
  order = np.argsort(owner, kind='stable')  # One sort for all sites.
  # Without examples, `np.split` returns one part.
  parts = np.split(order, np.cumsum(sizes)[:-1])[: names.size]
  return [(str(name), part) for name, part in zip(names, parts, strict=True)]


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """Training, validation and test examples of one task.

  Attributes:
    num_classes: 0 if labels are numbers.
    rows: `[num_train]`, index of each training example in the source; None if
      no training examples were held out.
    features: Features of a table, `[num_features]`; empty for arrays.
    moments: Moments of inputs; None for those of the training examples.
    numbers: Moments of numeric labels; None for those of the training examples.
  """

  name: str
  num_classes: int
  train: Split
  validation: Split
  test: Split
  rows: np.ndarray | None = None
  calibration: Split | None = None
  class_names: tuple[str, ...] = ()
  features: encoding.Features = ()
  moments: moments_lib.Moments | None = None
  numbers: moments_lib.Moments | None = None
  notation: table_format.TableFormat = table_format.DEFAULT
  notes: tuple[str, ...] = ()

  def recoded(self, features: encoding.Features) -> 'Dataset':
    """Returns the data set, encoded with the features of all sites."""
    splits: dict[str, Any] = {
      name: split._replace(x=encoding.recode(split.x, self.features, features))
      for name, split in self.splits.items()
    }
    return dataclasses.replace(self, features=features, **splits)

  @property
  def splits(self) -> dict[str, Split]:
    """Splits of the data set, by name."""
    named = {
      'train': self.train,
      'validation': self.validation,
      'calibration': self.calibration,
      'test': self.test,
    }
    return {name: split for name, split in named.items() if split is not None}

  @property
  def row_numbers(self) -> np.ndarray:
    """Index of each training example in the source."""
    return np.arange(len(self.train.y)) if self.rows is None else self.rows

  @property
  def input_shape(self) -> tuple[int, ...]:
    return self.train.x.shape[1:]

  @property
  def mean(self) -> np.ndarray:
    """Mean of each channel or feature over all sites' examples, float32."""
    return self._moments.mean.astype(np.float32)

  @property
  def std(self) -> np.ndarray:
    """Standard deviation over the same examples; 1 for a constant feature."""
    return self._moments.std.astype(np.float32)

  @property
  def label_moments(self) -> tuple[float, float]:
    """Mean and standard deviation of numeric training labels; else (0, 1)."""
    if not self.train.is_numeric:
      return 0.0, 1.0
    return float(self._numbers.mean[0]), float(self._numbers.std[0])

  @property
  def is_constant(self) -> bool:
    """Whether all training labels are the same number or class."""
    if self.train.is_numeric:
      return not self._numbers.scatter[0]
    return self.num_classes < 2

  @functools.cached_property
  def _numbers(self):
    return self.numbers or self._merged(self.train.y[:, np.newaxis])

  @functools.cached_property
  def _moments(self):
    return self.moments or self._merged(self.train.x)

  def _merged(self, values):
    """Merges the moments of the sites, so that they need not share examples."""
    parts = [values[rows] for _, rows in self.train.sites]
    return moments_lib.merged(parts or [values])


def stratify(
  labels: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
  """Returns sorted indices of a fraction of every class, and of the rest.

  Quotas are rounded so that their sum is the rounded total.
  """
  sizes = np.bincount(labels)
  exact = fraction * sizes
  quotas = np.floor(exact).astype(np.int64)
  extra = round(fraction * labels.size) - quotas.sum()
  order = np.lexsort((rng.random(sizes.size), quotas - exact))
  quotas[order[:extra]] += 1
  shuffled = rng.permutation(labels.size)
  taken = np.zeros(labels.size, bool)
  for c, quota in enumerate(quotas):
    taken[shuffled[labels[shuffled] == c][:quota]] = True
  return np.flatnonzero(taken), np.flatnonzero(~taken)
