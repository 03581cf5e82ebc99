"""What nodes say of their own examples, and what the server makes of it.

Before the first round a node with a file of its own sends sums: how many
examples of each class, means and spreads of features, how many it holds out.
The server merges them and sends the result back, so that all normalise and
number classes alike. No example leaves a node as such; of a site with one or
two its sums say them (docs/privacy.md). One class at one site is told apart
from none.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import json
import math

import numpy as np

from bfl_tf import datasets
from bfl_tf.datasets import tables

# Of one site: what comes of the counts is held by the server.
_MOST = 10**8


@dataclasses.dataclass(frozen=True)
class Introduction:
  """Of one site, or of several together.

  Attributes:
    counts: by a class's name, how many examples train.
    feature_names: in their order.
    shape: of an example.
    dtype: `uint8` or `float32`.
    moments: to normalise by.
    held: how many examples it keeps from training, by share: `calibration`,
      `test`.
  """

  counts: Mapping[str, int]
  feature_names: tuple[str, ...]
  shape: tuple[int, ...]
  dtype: str
  moments: datasets.Moments
  held: Mapping[str, int]

  @classmethod
  def of(cls, dataset: datasets.Dataset) -> 'Introduction':
    """Of a site's training examples."""
    sizes = np.bincount(dataset.train.y, minlength=dataset.num_classes)
    return cls(
      dict(zip(names(dataset), map(int, sizes))),
      tuple(dataset.feature_names),
      tuple(dataset.input_shape),
      dataset.train.x.dtype.name,
      datasets.Moments.of(dataset.train.x),
      {
        'calibration': len(dataset.calibration.y) if dataset.calibration else 0,
        'test': len(dataset.test.y),
      },
    )

  @classmethod
  def from_json(cls, text: str) -> 'Introduction':
    """Reads what `to_json` wrote, the same to the last bit.

    Raises:
      ValueError: it is something else.
    """
    try:
      fields = json.loads(text)
      size, mean, scatter = fields.pop('moments')
      sums = np.array(mean, np.float64), np.array(scatter, np.float64)
      for name in ('feature_names', 'shape'):
        fields[name] = tuple(fields[name])
      read = cls(**fields, moments=datasets.Moments(int(size), *sums))
      read._check()
    # It may be anything.
    except Exception as error:
      raise ValueError(f'its introduction cannot be read: {error}') from error
    return read

  def _check(self):
    """Refuses sums that no examples have."""
    counts = list(self.counts.values())
    if not all(type(n) is int and n >= 0 for n in counts):
      raise ValueError(f'counts of {counts}')
    if not 0 < sum(counts) <= _MOST:
      raise ValueError(f'{sum(counts)} examples')
    held = list(self.held.values())
    whole = all(type(n) is int and 0 <= n <= _MOST for n in held)
    if set(self.held) != {'calibration', 'test'} or not whole:
      raise ValueError(f'shares of {held}')
    size, mean, scatter = self.moments
    if np.shape(mean) != (self.shape[-1],) or mean.shape != scatter.shape:
      raise ValueError(f'moments of {np.shape(mean)} features')
    if size != sum(counts) * math.prod(self.shape[:-1]):
      raise ValueError(f'moments of {size} values')
    if not np.all(np.isfinite([mean, scatter])) or np.any(scatter < 0):
      raise ValueError('moments that no examples have')

  def to_json(self) -> str:
    """Returns a text; floats are written so that they come back."""
    size, mean, scatter = self.moments
    fields = dataclasses.asdict(self)
    fields['moments'] = [size, mean.tolist(), scatter.tolist()]
    return json.dumps(fields)

  @property
  def classes(self) -> tuple[str, ...]:
    """Names in the order of their numbers: by value if whole, else as texts."""
    return tuple(tables.ordered(self.counts))

  def merge(self, other: 'Introduction') -> 'Introduction':
    """Of both; features must be the same, and classes spelled alike.

    Raises:
      ValueError: they are not.
    """
    for what in ('feature_names', 'shape', 'dtype'):
      mine, theirs = getattr(self, what), getattr(other, what)
      if mine != theirs:
        raise ValueError(
          f"its {what.replace('_', ' ')} are {theirs}, the others' {mine}"
        )
    counts = {**self.counts}
    for name, number in other.counts.items():
      counts[name] = counts.get(name, 0) + number
    try:
      tables.ordered(counts)
    except ValueError as error:
      raise ValueError(f"its classes and the others' have {error}") from error
    moments = self.moments.merge(other.moments)
    held = {share: n + other.held[share] for share, n in self.held.items()}
    return dataclasses.replace(self, counts=counts, moments=moments, held=held)

  def tell(self, dataset: datasets.Dataset) -> datasets.Dataset:
    """Returns a site's data set with everybody's classes and normalisation."""
    own = numbers(dataset, self.classes)

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


def names(dataset: datasets.Dataset) -> tuple[str, ...]:
  """What the classes are called; by their numbers if they have no names."""
  return dataset.class_names or tuple(map(str, range(dataset.num_classes)))


def numbers(dataset: datasets.Dataset, classes: Sequence[str]) -> np.ndarray:
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
    raise ValueError(f'its file has the class {unknown[0]!r}, new to the run')
  return np.array([places[name] for name in names(dataset)], np.int32)


def merged(said: Mapping[int, Introduction]) -> Introduction:
  """Merges clients' introductions in the order of their numbers.

  Raises:
    ValueError: one has other features; its number is named.
  """

  def merge(all_others, item):
    client, introduction = item
    try:
      return all_others.merge(introduction)
    except ValueError as error:
      raise ValueError(f'client {client}: {error}.') from error

  (_, first), *others = sorted(said.items())
  return functools.reduce(merge, others, first)


def as_told(
  own: datasets.Dataset, said: Mapping[int, Introduction]
) -> datasets.Dataset:
  """Returns the data set that a server has: tests, and of clients the counts.

  Args:
    own: of the server's own file: all its examples are tests.
    said: by client number, from 0.

  Returns:
    Training examples are labels alone, as many of each class and client as
    there are on the nodes; their inputs are zeros.

  Raises:
    ValueError: features differ, or the server's file has a class that no
      client has.
  """
  everybody = merged(said)
  try:
    everybody.merge(Introduction.of(own))
  except ValueError as error:
    raise ValueError(f'--dataset={own.name}: {error}.') from error
  unknown = set(names(own)) - set(everybody.classes)
  if unknown:
    raise ValueError(
      f'--dataset={own.name} has the class {min(unknown)!r}, which no client '
      'has.'
    )
  own = everybody.tell(own)
  places = {name: number for number, name in enumerate(everybody.classes)}
  y, ids = [], []
  for client, introduction in sorted(said.items()):
    for name, number in introduction.counts.items():
      y.append(np.full(number, places[name], np.int32))
    ids.append(np.full(sum(introduction.counts.values()), client))
  labels = np.concatenate(y)
  nothing = np.zeros(1, everybody.dtype)
  return dataclasses.replace(
    own,
    train=datasets.Split(
      np.broadcast_to(nothing, (labels.size, *everybody.shape)), labels
    ),
    test=datasets.Split(
      np.concatenate([own.train.x, own.test.x]),
      np.concatenate([own.train.y, own.test.y]),
    ),
    client_ids=np.concatenate(ids),
    validation_ids=None,
    test_ids=None,
    rows=None,
  )
