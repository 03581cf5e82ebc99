"""Summaries of the nodes' own data files, of one node or of all."""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import math
from typing import Any

import numpy as np

from bfl_tf import data
from bfl_tf.data import encoding, tables

# Largest absolute value of an example, by its dtype.
_LARGEST = {'uint8': 255.0, 'float32': float(np.finfo(np.float32).max)}
_MOST_EXAMPLES = 10**8
# Type, lower and upper bound of the numbers in a site's fields.
_SCHEMA: dict[str, tuple[Any, float, float]] = {
  'counts': (int, 0, _MOST_EXAMPLES),
  'held': (int, 0, _MOST_EXAMPLES),
  'shape': (int, 1, 2**24),
  'size': (int, 0, 2**62),
  'mean': (float, -_LARGEST['float32'], _LARGEST['float32']),
  'scatter': (float, 0, 1e100),
}


@dataclasses.dataclass(frozen=True)
class DataSummary:
  """Sums over the examples of one node, or of several nodes together.

  Counts of classes, means and spreads of features: the server merges them and
  sends the result back, so that all normalise and number classes alike. No
  example leaves a node as such; of a site with one or two its sums say them
  (docs/privacy.md). One class at one site is told apart from none.

  Attributes:
    counts: Number of training examples, by class name.
    features: Features of a table.
    shape: Shape of an example.
    dtype: `uint8` or `float32`.
    moments: Moments for the normalization.
    held: Number of held-out examples, by share: `calibration`, `test`.
  """

  counts: Mapping[str, int]
  features: data.Features
  shape: tuple[int, ...]
  dtype: str
  moments: data.Moments
  held: Mapping[str, int]

  @classmethod
  def of(cls, dataset: data.Dataset) -> 'DataSummary':
    """Returns the summary of a site's training examples."""
    sizes = np.bincount(dataset.train.y, minlength=dataset.num_classes)
    return cls(
      dict(zip(names(dataset), map(int, sizes))),
      dataset.features,
      tuple(dataset.input_shape),
      dataset.train.x.dtype.name,
      data.Moments.of(dataset.train.x),
      {
        'calibration': len(dataset.calibration.y) if dataset.calibration else 0,
        'test': len(dataset.test.y),
      },
    )

  @classmethod
  def from_json(cls, text: str, num_sites: int = 1) -> 'DataSummary':
    """Reads what `to_json` wrote, the same to the last bit.

    Args:
      text: JSON of one site, or of several merged sites.
      num_sites: Number of these sites.

    Raises:
      ValueError: The text does not follow the schema, or no examples have
        these sums.
    """
    try:
      fields = json.loads(text)
      sums = data.Moments(*fields.pop('moments'))
      _check_numbers(fields | sums._asdict(), num_sites)
      moments = data.Moments(*map(np.array, sums))
      fields['shape'] = tuple(fields['shape'])
      fields['features'] = tuple(
        data.Feature(*each) for each in fields['features']
      )
      read = cls(**fields, moments=moments)
      read._check(num_sites)
    # It may be anything.
    except Exception as error:
      raise ValueError(f'its data_summary cannot be read: {error}') from error
    return read

  def _check(self, num_sites):
    """Raises a ValueError unless examples can have these sums."""
    size, mean, scatter = self.moments
    largest, rows = _LARGEST[self.dtype], sum(self.counts.values())
    most = rows * math.prod(self.shape[:-1])
    if not (
      set(self.held) == {'calibration', 'test'}
      and size.shape == mean.shape == scatter.shape == self.shape[-1:]
      and (not self.features or self.shape == (len(set(self.features)),))
      and all(isinstance(f.column, str) for f in self.features)
      and all(isinstance(f.value, str | None) for f in self.features)
      and 0 < rows <= _MOST_EXAMPLES * num_sites
      and np.all((size == most) | encoding.has_gaps(self.features))
      and np.all(size <= most)
      and np.all(abs(mean) <= largest)
      and np.all(scatter <= size * largest**2)
    ):
      raise ValueError('no examples have these sums')

  def to_json(self) -> str:
    """Returns a text; floats are written so that they come back."""
    size, mean, scatter = self.moments
    fields = dataclasses.asdict(self)
    fields['moments'] = [size.tolist(), mean.tolist(), scatter.tolist()]
    return json.dumps(fields)

  @property
  def classes(self) -> tuple[str, ...]:
    """Names in the order of their numbers: by value if whole, else as texts."""
    return tuple(tables.ordered(self.counts))

  def merge(self, other: 'DataSummary') -> 'DataSummary':
    """Returns the summary of both; columns and classes must agree.

    Raises:
      ValueError: they are not.
    """
    features = encoding.union(self.features, other.features)
    mine, theirs = self._recoded(features), other._recoded(features)
    for what, here, there in (
      ('shape', mine.shape, theirs.shape),
      ('dtype', mine.dtype, theirs.dtype),
    ):
      if here != there:
        raise ValueError(f"its {what} is {there}, the others' {here}")
    counts = {**self.counts}
    for name, number in other.counts.items():
      counts[name] = counts.get(name, 0) + number
    try:
      tables.ordered(counts)
    except ValueError as error:
      raise ValueError(f"its classes and the others' have {error}") from error
    moments = mine.moments.merge(theirs.moments)
    held = {share: n + other.held[share] for share, n in self.held.items()}
    return dataclasses.replace(mine, counts=counts, moments=moments, held=held)

  def _recoded(self, features):
    if not features:
      return self
    rows = sum(self.counts.values())
    moments = encoding.recode_moments(
      self.moments, self.features, features, rows
    )
    shape = (len(features),)
    return dataclasses.replace(
      self, features=features, shape=shape, moments=moments
    )

  def tell(self, dataset: data.Dataset) -> data.Dataset:
    """Returns a site's data set with everybody's classes and normalisation."""
    own = numbers(dataset, self.classes)
    dataset = dataset.recoded(self.features)

    def renumbered(split):
      return split._replace(y=own[split.y])

    return dataclasses.replace(
      dataset,
      num_classes=len(self.classes),
      class_names=self.classes,
      train=renumbered(dataset.train),
      validation=renumbered(dataset.validation),
      test=renumbered(dataset.test),
      moments=self.moments,
    )


def _check_numbers(fields: Mapping[str, Any], num_sites: int) -> None:
  """Raises a ValueError unless all numbers are as in `_SCHEMA`."""
  for name, (kind, least, most) in _SCHEMA.items():
    values = fields[name]
    for value in values.values() if isinstance(values, dict) else values:
      if type(value) is not kind or not least <= value <= most * num_sites:
        raise ValueError(
          f'{name} has {value!r:.40}, expected {kind.__name__} from {least:g} '
          f'to {most:g}'
        )


def names(dataset: data.Dataset) -> tuple[str, ...]:
  """Returns the names of the classes, or their numbers as text."""
  return dataset.class_names or tuple(map(str, range(dataset.num_classes)))


def numbers(dataset: data.Dataset, classes: Sequence[str]) -> np.ndarray:
  """Returns, of a site's classes, the numbers that everybody gives them.

  Args:
    dataset: the site's; its class `c` is everybody's `numbers[c]`.
    classes: everybody's, by name.

  Raises:
    ValueError: the site has another one.
  """
  places = {name: number for number, name in enumerate(classes)}
  unknown = sorted(set(names(dataset)) - set(places))
  if unknown:
    raise ValueError(
      f'its file has the class {unknown[0]!r}, which is not a class of this run'
    )
  return np.array([places[name] for name in names(dataset)], np.int32)


def merged(said: Mapping[int, DataSummary]) -> DataSummary:
  """Merges clients' data_summaries in the order of their numbers.

  Raises:
    ValueError: one has other features; its number is named.
  """

  (_, together), *others = sorted(said.items())
  for client, data_summary in others:
    try:
      together = together.merge(data_summary)
    except ValueError as error:
      raise ValueError(f'client {client}: {error}.') from error
  return together
