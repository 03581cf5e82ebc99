"""Summaries of the nodes' own data files, of one node or of all."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import hashlib
import itertools
import json
import math
from typing import Any

import numpy as np

from bfl_tf import data
from bfl_tf.data import encoding, findings, tables
from bfl_tf.federation import stopping

# Largest absolute value of an example, by its dtype.
_LARGEST = {'uint8': 255.0, 'float32': float(np.finfo(np.float32).max)}
_MOST_CHARACTERS = 2**24
# Type, lower and upper bound, and largest number of the values in the fields of
# a site; for texts, the bounds of their lengths. The server stores a few
# numbers per example of a site.
_SCHEMA: dict[str, tuple[Any, float, float, int]] = {
  'names': (str, 0, 1000, 2 * 10**5),
  'counts': (int, 0, 10**7, 10**4),
  'held': (int, 0, 10**7, 2),
  'shape': (int, 1, 2**24, 4),
  'size': (int, 0, 2**62, 2**24),
  'mean': (float, -_LARGEST['float32'], _LARGEST['float32'], 2**24),
  'scatter': (float, 0, 1e100, 2**24),
}


@dataclasses.dataclass(frozen=True)
class DataSummary:
  """Class counts and feature moments of one node or of several merged nodes.

  The server merges the summaries and sends the result back, so that all nodes
  use the same normalization and class numbers. Examples stay on their node, but
  the sums of only one or two examples reveal them (docs/privacy.md).

  Attributes:
    counts: Number of training examples, by class name; numeric labels are one
      class.
    held: Number of held-out examples, by share: `calibration`, `test`.
  """

  counts: Mapping[str, int]
  features: data.Features
  shape: tuple[int, ...]
  dtype: str
  moments: data.Moments
  held: Mapping[str, int]
  numbers: data.Moments | None = None

  @classmethod
  def of(cls, dataset: data.Dataset) -> 'DataSummary':
    """Returns the summary of a site's training examples."""
    train = dataset.train
    sizes = np.bincount(train.strata, minlength=len(names(dataset)))
    return cls(
      dict(zip(names(dataset), map(int, sizes))),
      dataset.features,
      tuple(dataset.input_shape),
      train.x.dtype.name,
      data.Moments.of(train.x),
      {
        'calibration': len(dataset.calibration.y) if dataset.calibration else 0,
        'test': len(dataset.test.y),
      },
      data.Moments.of(train.y[:, np.newaxis]) if train.is_numeric else None,
    )

  @classmethod
  def from_json(cls, text: str, num_sites: int = 1) -> 'DataSummary':
    """Reads the output of `to_json`, bit-for-bit identical."""
    try:
      if len(text) > _MOST_CHARACTERS * num_sites:
        raise ValueError(f'it has {len(text)} characters')
      fields = json.loads(text)
      names = (*fields['counts'], *itertools.chain(*fields['features']))
      known = {'names': [name for name in names if name is not None]}
      for name in ('moments', 'numbers'):
        if fields[name] is not None:
          sums = data.Moments(*fields[name])
          _check_schema({**fields, **known, **sums._asdict()}, num_sites)
          fields[name] = data.Moments(*map(np.array, sums))
      fields['shape'] = tuple(fields['shape'])
      fields['features'] = tuple(
        data.Feature(*each) for each in fields['features']
      )
      read = cls(**fields)
      read._check(num_sites)
    # A node may send any text, so any exception is possible.
    except Exception as error:
      why = stopping.clean(str(error)).rstrip('.')
      raise ValueError(f'its data_summary cannot be read: {why}') from error
    return read

  def _check(self, num_sites):
    """Raises a ValueError unless examples can have these sums."""
    size, mean, scatter = self.moments
    numbers = self.numbers or data.Moments(*np.zeros([3, 1]))
    largest, rows = _LARGEST[self.dtype], sum(self.counts.values())
    most = rows * math.prod(self.shape[:-1])
    if not (
      set(self.held) == {'calibration', 'test'}
      and size.shape == mean.shape == scatter.shape == self.shape[-1:]
      and (not self.features or self.shape == (len(set(self.features)),))
      and None not in encoding.columns(self.features)
      and 0 < rows <= _SCHEMA['counts'][2] * num_sites
      and math.prod(self.shape) <= _SCHEMA['shape'][2]
      and np.all((size == most) | encoding.has_gaps(self.features))
      and np.all(size <= most)
      and np.all(abs(mean) <= largest)
      and np.all(scatter <= size * largest**2)
      and numbers.size.tolist() == [rows if self.numbers else 0]
      and numbers.mean.shape == numbers.scatter.shape == (1,)
      and np.all(numbers.scatter <= numbers.size * _LARGEST['float32'] ** 2)
    ):
      raise ValueError('no set of examples has these sums')
    tables.ordered('counts has', self.counts)

  def to_json(self) -> str:
    """Returns the summary as JSON with exact floats."""
    fields = dataclasses.asdict(self)
    for name in ('moments', 'numbers'):
      if fields[name] is not None:
        fields[name] = [values.tolist() for values in fields[name]]
    return json.dumps(fields)

  @property
  def digest(self) -> str:
    """Digest of the summary, which shows whether the sums have changed."""
    return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

  @property
  def classes(self) -> tuple[str, ...]:
    """Class names in the order of their numbers: by value if all are integers,
    otherwise by text."""
    return tuple(tables.ordered('', self.counts))

  def merge(self, other: 'DataSummary') -> 'DataSummary':
    """Returns the summary of both nodes."""
    features = encoding.union(self.features, other.features)
    mine, theirs = self._recoded(features), other._recoded(features)
    for what, here, there in (
      ('shape', mine.shape, theirs.shape),
      ('dtype', mine.dtype, theirs.dtype),
      ('kind of labels', mine._kind, theirs._kind),
    ):
      if here != there:
        raise ValueError(f"its {what} is {there}, the others' {here}")
    counts = {**self.counts}
    for name, number in other.counts.items():
      counts[name] = counts.get(name, 0) + number
    tables.ordered("its classes and the others' have", counts)
    moments = mine.moments.merge(theirs.moments)
    num_held = {share: n + other.held[share] for share, n in self.held.items()}
    of_labels = None
    if mine.numbers and theirs.numbers:
      of_labels = mine.numbers.merge(theirs.numbers)
    return dataclasses.replace(
      mine, counts=counts, moments=moments, held=num_held, numbers=of_labels
    )

  @property
  def _kind(self):
    return 'numbers' if self.numbers else 'classes'

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
    """Returns a site's data set with the common classes and normalization."""
    own = numbers(dataset, self.classes)
    dataset = dataset.recoded(self.features)
    dataset = dataclasses.replace(
      dataset, moments=self.moments, numbers=self.numbers
    )
    if self.numbers:
      return dataset
    splits: Any = {
      name: split._replace(y=own[split.y])
      for name, split in dataset.splits.items()
    }
    names, count = self.classes, len(self.classes)
    return dataclasses.replace(
      dataset, num_classes=count, class_names=names, **splits
    )


def _check_schema(fields: Mapping[str, Any], num_sites: int) -> None:
  """Raises a ValueError unless all names and numbers are as in `_SCHEMA`."""
  for name, (kind, least, most, number) in _SCHEMA.items():
    field = fields[name]
    values = [*(field.values() if isinstance(field, dict) else field)]
    wrong = [
      value
      for value in values
      if type(value) is not kind
      or not least <= (len(value) if kind is str else value) <= most * num_sites
      or (kind is str and not value.isprintable())
    ]
    if wrong or len(values) > number * num_sites:
      raise ValueError(
        f'{name} has {len(values)} values ({[*wrong, *values][0]!r:.40}), not '
        f'up to {number} of {kind.__name__} from {least:g} to {most:g}'
      )


def names(dataset: data.Dataset) -> tuple[str, ...]:
  """Returns the names of the classes, or their numbers as text."""
  if dataset.train.is_numeric:
    return ('number',)
  return dataset.class_names or tuple(map(str, range(dataset.num_classes)))


def numbers(dataset: data.Dataset, classes: Sequence[str]) -> np.ndarray:
  """Returns the common class number of each class of a site."""
  places = {name: number for number, name in enumerate(classes)}
  unknown = sorted(set(names(dataset)) - set(places))
  if unknown:
    raise ValueError(
      f'its file has the class {unknown[0]!r}, which is not a class of this run'
    )
  return np.array([places[name] for name in names(dataset)], np.int32)


def far_sites(summaries: Mapping[int, DataSummary]) -> Iterator[str]:
  """Yields a line for each feature in which a client is far from the others."""
  features = merged(summaries).features
  moments = [each._recoded(features).moments for each in summaries.values()]
  yield from findings.far_means(
    [f'client {client}' for client in summaries],
    [each.column if each.value is None else None for each in features],
    moments,
  )


def merged(summaries: Mapping[int, DataSummary]) -> DataSummary:
  """Merges the clients' summaries in the order of client numbers."""

  (_, together), *others = sorted(summaries.items())
  for client, data_summary in others:
    try:
      together = together.merge(data_summary)
    except ValueError as error:
      why = stopping.clean(str(error)).rstrip('.')
      raise ValueError(f'client {client}: {why}.') from error
  return together
