"""A data set as a few arrays."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from bfl_tf.data import encoding
from bfl_tf.data import moments as moments_lib


class Split(NamedTuple):
  """Examples as columns.

  Attributes:
    x: uint8 images `[num_examples, height, width, channels]`, or float32
      images of that shape or features `[num_examples, num_features]`, of a
      table NaN where a number is missing.
    y: int32 classes `[num_examples]`.
    ids: `[num_examples]`, whose each example is; None where nobody says.
  """

  x: np.ndarray
  y: np.ndarray
  ids: np.ndarray | None = None

  def take(self, indices: np.ndarray) -> 'Split':
    """Returns some of the examples."""
    ids = None if self.ids is None else np.asarray(self.ids)[indices]
    return Split(self.x[indices], self.y[indices], ids)

  @property
  def sites(self) -> list[tuple[str, np.ndarray]]:
    """Each site's name and the sorted indices of its examples, by name."""
    if self.ids is None:
      return []
    names, owner, sizes = np.unique(
      np.asarray(self.ids), return_inverse=True, return_counts=True
    )
    order = np.argsort(owner, kind='stable')  # Once: there may be thousands.
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return [(str(name), part) for name, part in zip(names, parts, strict=True)]


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """Training, validation and test examples of one classification task.

  Attributes:
    name: Value of `--dataset`.
    num_classes: labels are below it.
    train: Training examples of clients and server.
    validation: taken from the training examples; has none by default.
    test: the test examples.
    rows: `[num_train]`, each training example's place in the source, where
      validation examples were taken out.
    calibration: held out to set thresholds and temperatures by, never trained
      on; None where the run keeps no such share.
    class_names: Names of the classes, if the source has them.
    features: `[num_features]`, of a table.
    moments: Moments for the normalization; None for those of the training
      examples.
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

  def recoded(self, features: encoding.Features) -> 'Dataset':
    """Returns it with rows of the features of all sites.

    Raises:
      ValueError: The columns differ, or a cell has a category that no site has.
    """
    splits: dict[str, Any] = {
      name: split._replace(x=encoding.recode(split.x, self.features, features))
      for name, split in self.splits.items()
    }
    return dataclasses.replace(self, features=features, **splits)

  @property
  def splits(self) -> dict[str, Split]:
    """The splits that the data set has, by name."""
    named = {
      'train': self.train,
      'validation': self.validation,
      'calibration': self.calibration,
      'test': self.test,
    }
    return {name: split for name, split in named.items() if split is not None}

  @property
  def row_numbers(self) -> np.ndarray:
    """Each training example's place in the source, from 0."""
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
    """Standard deviation, likewise; 1 where a feature is constant."""
    return self._moments.std.astype(np.float32)

  @functools.cached_property
  def _moments(self):
    if self.moments is not None:
      return self.moments
    x, sites = self.train.x, self.train.sites
    return moments_lib.merged((x[rows] for _, rows in sites) if sites else [x])


def stratify(
  labels: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
  """Takes a fraction of every class.

  Args:
    labels: integer classes `[num_examples]`.
    fraction: Fraction of each class; quotas are rounded so that their sum is
      the rounded total.
    rng: decides which examples, and ties.

  Returns:
    Sorted indices of the taken examples, and of the rest.
  """
  sizes = np.bincount(labels)
  exact = fraction * sizes
  quotas = np.floor(exact).astype(np.int64)
  extra = round(fraction * labels.size) - quotas.sum()
  order = np.lexsort((rng.random(sizes.size), quotas - exact))
  quotas[order[:extra]] += 1
  shuffled = rng.permutation(labels.size)
  by_class = [shuffled[labels[shuffled] == c] for c in range(sizes.size)]
  taken = [pool[:quota] for pool, quota in zip(by_class, quotas)]
  rest = [pool[quota:] for pool, quota in zip(by_class, quotas)]
  return np.sort(np.concatenate(taken)), np.sort(np.concatenate(rest))
