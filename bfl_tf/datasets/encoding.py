"""How the cells of a table become numbers, alike at sites that never met.

A column of numbers is a feature. Empty cells are NaN there, the mean once they
are normalised, and a feature of its own, 0 or 1, says where they are. A column
of categories has such a feature for each that was seen. What two sites have
features of is the union; what one of them lacks is 0 in its rows.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from bfl_tf.datasets import moments as moments_lib


class Feature(NamedTuple):
  """What one number of an example says.

  Attributes:
    column: of the table.
    value: None for the column's own number; else whether the cell says this,
      `''` whether it is empty.
  """

  column: str
  value: str | None = None

  @property
  def is_number(self) -> bool:
    return self.value is None


Features = tuple[Feature, ...]


def columns(features: Sequence[Feature]) -> list[str]:
  """Returns the columns that features are of."""
  return list(dict.fromkeys(feature.column for feature in features))


def of_column(column: str, values: Set[str | None]) -> list[Feature]:
  """Returns features in their order: number, gaps, categories as texts."""
  return [
    Feature(column, value)
    for value in sorted(values, key=lambda v: (v is not None, v or ''))
  ]


def union(mine: Features, theirs: Features) -> Features:
  """Returns the features of both sites together.

  Raises:
    ValueError: the columns differ, or one holds numbers here and categories
      there.
  """
  order, others = columns(mine), columns(theirs)
  if order != others:
    raise ValueError(f"its columns are {others}, the others' {order}")
  found = []
  for column in order:
    values = {f.value for f in {*mine, *theirs} if f.column == column}
    if None in values and values - {None, ''}:
      raise ValueError(
        f'its column {column!r} holds numbers and that of others categories, '
        'or theirs numbers: name it in categorical columns everywhere'
      )
    found += of_column(column, values)
  return tuple(found)


def own(x: np.ndarray, features: Features) -> np.ndarray:
  """Leaves out of a site's rows what it would have no feature of alone."""
  if not features:
    return x
  said = np.array([not f.is_number for f in features])
  return x[:, ~(np.isnan(x) | (said & (x == 0))).all(axis=0)]


def recode(x: np.ndarray, mine: Features, wanted: Features) -> np.ndarray:
  """Returns a site's rows, of its own features, as those of all sites.

  Args:
    x: `[num_rows, len(mine)]`.
    mine: features of the rows.
    wanted: a union that they are part of.

  Raises:
    ValueError: the columns differ, or a feature is not wanted.
  """
  if mine == wanted:
    return x
  places = _places(mine, wanted)
  out = np.zeros([len(x), len(wanted)], x.dtype)
  for at, feature in enumerate(wanted):
    if feature in places:
      out[:, at] = x[:, places[feature]]
    elif feature.is_number:
      out[:, at] = np.nan
  return out


def recode_moments(
  found: moments_lib.Moments, mine: Features, wanted: Features, num_rows: int
) -> moments_lib.Moments:
  """Returns the moments that `recode`'s rows would have."""
  if mine == wanted:
    return found
  places = _places(mine, wanted)
  nothing = [(0 if f.is_number else num_rows, 0.0, 0.0) for f in wanted]
  sums = [
    [part[places[feature]] for part in found] if feature in places else none
    for feature, none in zip(wanted, nothing, strict=True)
  ]
  size, mean, scatter = zip(*sums, strict=True)
  return moments_lib.Moments(
    np.array(size, np.int64), np.array(mean), np.array(scatter)
  )


def _places(mine, wanted):
  """Returns where each of `mine` is, all of which are wanted."""
  here, there = set(columns(mine)), set(columns(wanted))
  if here != there:
    raise ValueError(
      f"its columns are {columns(mine)}, the run's {columns(wanted)}"
    )
  known = set(wanted)
  for feature in mine:
    if feature not in known:
      column, value = feature
      what = 'numbers' if value is None else repr(value) if value else 'gaps'
      raise ValueError(f'its column {column!r} has {what}, new to the run')
  return {feature: at for at, feature in enumerate(mine)}
