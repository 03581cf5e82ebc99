"""Encoding of table cells as numbers, in the same way at all sites.

A column of numbers is one feature. A missing number is NaN, and normalization
replaces it by the mean. A second feature, 0 or 1, marks the missing numbers. A
column of categories has one 0/1 feature per observed category. Several sites
use the union of their features. A feature that a site lacks is 0 in its rows.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from bfl_tf.data import moments

# Largest number of columns with categories, and of their categories, in a
# description.
_SHOWN = 4


class Feature(NamedTuple):
  """The meaning of one number of an example.

  `value` is None for the number of the column. Otherwise it is the category
  that is marked with 1, or `''` for a missing value.
  """

  column: str
  value: str | None = None


Features = tuple[Feature, ...]


def columns(features: Sequence[Feature]) -> list[str]:
  """Returns the columns of features, without duplicates."""
  return list(dict.fromkeys(feature.column for feature in features))


def of_column(column: str, values: Set[str | None]) -> list[Feature]:
  """Returns features of a column: number, missing values, sorted categories."""
  return [
    Feature(column, value)
    for value in sorted(values, key=lambda v: (v is not None, v or ''))
  ]


def describe(x: np.ndarray, features: Features) -> str:
  """Returns the kinds of the columns of a table, such as `2 numbers`."""
  values: dict[str, list[str]] = {f.column: [] for f in features}
  varying = set()
  for (column, value), cells in zip(features, x.T):
    values[column] += [value] if value else []
    if len(x) == 1 or np.unique(cells).size > 1:
      varying.add(column)
  words = [
    f'{column}: {_some(categories, " ")}'
    for column, categories in values.items()
    if categories and column in varying
  ]
  numbers, constants = len(varying) - len(words), len(values) - len(varying)
  kinds = 'categories' if len(words) > 1 else 'category'
  return ', '.join([
    *[f'{numbers} number{"s" * (numbers > 1)}'] * (numbers > 0),
    *[f'{len(words)} {kinds} ({_some(words, "; ")})'] * (len(words) > 0),
    *[f'{constants} constant'] * (constants > 0),
    f'{100 * missing_fraction(features, x.mean(0, float)):.1f} % missing',
  ])  # fmt: skip


def _some(texts, mark):
  return mark.join([*texts[:_SHOWN], *['...'] * (len(texts) > _SHOWN)])


def missing_fraction(features: Features, means: np.ndarray) -> float:
  """Returns the fraction of missing cells, from the means of the features."""
  gaps = [
    value for feature, value in zip(features, means) if feature.value == ''
  ]
  return float(sum(gaps) / max(1, len(columns(features))))


def has_gaps(features: Features) -> np.ndarray:
  """Returns for each feature whether its number may be missing."""
  if not features:
    return np.array(False)
  gaps = {f.column for f in features if f.value == ''}
  return np.array(
    [f.value is None and f.column in gaps for f in features], bool
  )


def union(mine: Features, theirs: Features) -> Features:
  """Returns the features of two sites, in column order of `mine`."""
  _check_columns(mine, theirs)
  values: dict[str, set[str | None]] = {}
  for column, value in (*mine, *theirs):
    column_values = values.setdefault(column, set())
    column_values.add(value)
    if None in column_values and column_values - {None, ''}:
      raise ValueError(
        f'its column {column!r} is numeric and that of others is categorical, '
        'or vice versa: all owners must name it in categorical-columns'
      )
  return tuple(
    f for column in values for f in of_column(column, values[column])
  )


def recode(x: np.ndarray, mine: Features, wanted: Features) -> np.ndarray:
  """Returns the rows of a site, encoded with the features of all sites."""
  if mine == wanted:
    return x
  out = np.zeros([len(x), len(wanted)], x.dtype)
  out[:, [f.value is None for f in wanted]] = np.nan
  out[:, _places(mine, wanted)] = x
  return out


def recode_moments(
  source: moments.Moments, mine: Features, wanted: Features, num_rows: int
) -> moments.Moments:
  """Returns the moments of rows after `recode`."""
  if mine == wanted:
    return source
  size = np.where([f.value is None for f in wanted], 0, num_rows)
  out = moments.Moments(size, *np.zeros([2, len(wanted)]))
  for new, old in zip(out, source, strict=True):
    new[_places(mine, wanted)] = old
  return out


def _places(mine, wanted) -> list[int]:
  """Returns the index in `wanted` of each feature of `mine`."""
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
