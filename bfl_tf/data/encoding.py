"""Encode the cells of a table as numbers, in the same way at all sites.

A column of numbers is a feature. Empty cells are NaN there, the mean once they
are normalised, and a feature of its own, 0 or 1, says where they are. A column
of categories has such a feature for each that was seen. Two sites together have
the union of their features; those that one of them lacks are 0 in its rows.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from bfl_tf.data import moments


class Feature(NamedTuple):
  """The meaning of one number of an example.

  Attributes:
    column: Name of the column in the table.
    value: None where it is the column's number; else the category that it is 1
      for, `''` where it is 1 for a gap.
  """

  column: str
  value: str | None = None


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


def has_gaps(features: Features) -> np.ndarray:
  """Returns where a number may be missing: bool, a feature each if any are."""
  if not features:
    return np.array(False)
  gaps = {f.column for f in features if f.value == ''}
  return np.array(
    [f.value is None and f.column in gaps for f in features], bool
  )


def union(mine: Features, theirs: Features) -> Features:
  """Returns the features of both sites together, columns in order of `mine`.

  Raises:
    ValueError: the columns differ, or one holds numbers here and categories
      there.
  """
  _check_columns(mine, theirs)
  values: dict[str, set[str | None]] = {}
  for column, value in (*mine, *theirs):
    values.setdefault(column, set()).add(value)
  for column, found in values.items():
    if None in found and found - {None, ''}:
      raise ValueError(
        f'its column {column!r} has numbers and theirs has categories, or the '
        'other way round: the owners name it in categorical-columns'
      )
  return tuple(
    f for column in values for f in of_column(column, values[column])
  )


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
  out = np.zeros([len(x), len(wanted)], x.dtype)
  out[:, [f.value is None for f in wanted]] = np.nan
  out[:, _places(mine, wanted)] = x
  return out


def recode_moments(
  found: moments.Moments, mine: Features, wanted: Features, num_rows: int
) -> moments.Moments:
  """Returns the moments that `recode`'s rows would have."""
  if mine == wanted:
    return found
  size = np.where([f.value is None for f in wanted], 0, num_rows)
  out = moments.Moments(size, *np.zeros([2, len(wanted)]))
  for made, part in zip(out, found, strict=True):
    made[_places(mine, wanted)] = part
  return out


def _places(mine, wanted) -> list[int]:
  """Returns the index of each of `mine` among the expected values."""
  _check_columns(wanted, mine)
  places = {feature: at for at, feature in enumerate(wanted)}
  for column, value in mine:
    if (column, value) not in places:
      what = 'numbers' if value is None else repr(value) if value else 'gaps'
      raise ValueError(f'its column {column!r} has {what}, new to the run')
  return [places[feature] for feature in mine]


def _check_columns(mine, theirs):
  if set(columns(mine)) != set(columns(theirs)):
    raise ValueError(
      f"its columns are {columns(theirs)}, the others' {columns(mine)}"
    )
