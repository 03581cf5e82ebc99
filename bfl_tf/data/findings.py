"""Warnings about a table that can be read but may be misleading.

Each check yields one line for each finding.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import re
from typing import Any
import unicodedata

import numpy as np

from bfl_tf.data import columns, encoding, table_format
from bfl_tf.data import moments as moments_lib

_MOST_LINES = 10
# Smallest column of persons or of record numbers.
_FEWEST = 20
# Columns with fewer other numbers are codes.
_CODES = 5
# Robust standard deviations between a cell and the median of its column.
_FAR_CELL = 10
# Standard deviations within sites, between the mean of a site and of the rest.
_FAR_SITE = 4
_FEWEST_AT_SITE = 5
# Smallest fraction of equal rows that is reported; fewer may be chance.
_EQUAL_ROWS = 0.01
# Standard deviation of normal numbers, divided by their median deviation.
_NORMAL = 1.4826
_TIME = r'\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?'
_DATE = re.compile(
  rf'\d{{1,4}}([-./])\d{{1,2}}\1\d{{1,4}}([T ]{_TIME}Z?)?|{_TIME}|'
  r'(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])'
)


@dataclasses.dataclass(frozen=True)
class Table:
  """A table that has been read.

  Attributes:
    names: Names of the classes; empty for numeric labels.
    site: Column of the sites, or ''.
  """

  texts: Any
  rows: columns.Split
  features: encoding.Features
  names: Sequence[str]
  label: str
  site: str
  notation: table_format.TableFormat

  @property
  def numbers(self) -> dict[str, np.ndarray]:
    """Columns of numbers, `[num_rows]` float32; NaN for missing numbers."""
    return {
      feature.column: x
      for feature, x in zip(self.features, self.rows.x.T, strict=True)
      if feature.value is None
    }

  @functools.cached_property
  def sites(self) -> tuple[np.ndarray, np.ndarray]:
    """Names of the sites, and number of the site of each row."""
    ids = self.rows.ids
    ids = np.zeros(len(self.rows.y), int) if ids is None else ids
    return np.unique(ids, return_inverse=True)

  def is_date(self, column: str) -> bool:
    """Whether all cells that are not missing are dates or times."""
    texts = self.texts[column].unique()
    known = texts[~self.notation.of(column).is_missing(texts)]
    return known.size > 0 and all(map(_DATE.fullmatch, known))

  def is_record_number(self, column: str) -> bool:
    """Whether each row has another whole number."""
    cells = self.texts[column]
    return (
      cells.size >= _FEWEST
      and cells.is_unique
      and all(text.removesuffix('.0').isdigit() for text in cells)
    )


def lines(table: Table) -> list[str]:
  """Returns at most ten lines, in the order of the checks."""
  findings = [*itertools.chain.from_iterable(check(table) for check in CHECKS)]
  if len(findings) > _MOST_LINES:
    more = len(findings) - _MOST_LINES + 1
    findings[_MOST_LINES - 1 :] = [f'{more} more findings']
  return findings


def equal_rows(table: Table) -> Iterator[str]:
  """Finds rows with the features and the label of an earlier row."""
  rows = table.rows
  first = _first_equal(np.column_stack([rows.x, rows.y]))
  equal = int((first != np.arange(first.size)).sum())
  if equal > max(1, _EQUAL_ROWS * first.size):
    yield (
      f'{equal} of {first.size} rows are equal to an earlier row (features and '
      'label): remove copies'
    )


def copies(
  rows: columns.Split, numbers: Mapping[str, np.ndarray]
) -> np.ndarray | None:
  """Returns the group of each row, `[num_rows]`: equal rows of a site.

  A site without many equal rows has a group for each row. So has a site whose
  columns of numbers have few values, because there, different persons may have
  equal rows. The result is None if no site has copies.
  """
  groups = np.arange(len(rows.y))
  whole = np.column_stack([rows.x, rows.y])
  ids = np.zeros(len(rows.y)) if rows.ids is None else rows.ids
  for site in np.unique(ids):
    here = np.flatnonzero(ids == site)
    first = _first_equal(whole[here])
    equal = (first != np.arange(first.size)).sum()
    if equal > max(1, _EQUAL_ROWS * here.size) and any(
      np.unique(x[here]).size >= _FEWEST for x in numbers.values()
    ):
      groups[here] = here[first]
  return None if np.array_equal(groups, np.arange(groups.size)) else groups


def _first_equal(rows: np.ndarray) -> np.ndarray:
  """Returns the place of the first equal row, `[num_rows]`; NaN equals NaN."""
  import pandas

  group, _ = pandas.factorize(np.array([row.tobytes() for row in rows], object))
  _, first = np.unique(group, return_index=True)
  return first[group]


def persons(table: Table) -> Iterator[str]:
  """Finds texts or whole numbers that divide the rows into small groups.

  Either each value is in about the same number of rows, or each value belongs
  to one site. The counts of random values have a variance close to their mean.
  """
  import pandas

  if table.rows.groups is not None:
    return
  names, site = table.sites
  for column, cells in table.texts.items():
    codes, values = pandas.factorize(cells)
    numbers = table.notation.of(column).numbers(values)
    if (
      not _FEWEST <= len(values) <= codes.size / 2
      or (numbers[np.isfinite(numbers)] % 1).any()
      or table.is_date(column)
    ):
      continue
    counts = np.bincount(codes)
    is_nested = 1 < names.size < len(values) and len(values) == (
      np.unique(codes * names.size + site).size
    )
    if counts.var() < counts.mean() / 4 or is_nested:
      each = ' to '.join(dict.fromkeys([f'{counts.min()}', f'{counts.max()}']))
      yield (
        f'{column!r} has {len(values)} values with {each} rows each: is it a '
        f'person? --group_column={column}'
      )


def record_numbers(table: Table) -> Iterator[str]:
  """Finds features with another whole number in each row."""
  for column in encoding.columns(table.features):
    if table.is_record_number(column):
      yield (
        f'{column!r} has another whole number in each row: is it a record '
        f'number? --ignore_columns={column}'
      )


def dates(table: Table) -> Iterator[str]:
  """Finds features that are dates or times."""
  for column in encoding.columns(table.features):
    if table.is_date(column):
      yield (
        f'{column!r} is a date or time, such as {table.texts[column].iloc[0]}: '
        f'--ignore_columns={column}, or derive a number from it, such as days '
        'since admission'
      )


def far_cells(table: Table) -> Iterator[str]:
  """Finds numbers far from all others: repeated numbers, and up to 3 cells."""
  rows = table.rows
  labels = {table.label: rows.y} if rows.is_numeric else {}
  for column, x in (table.numbers | labels).items():
    ordered = np.sort(x[np.isfinite(x)])
    remark = _repeated(column, ordered) or _cells(table, column, x, ordered)
    if remark:
      yield remark


def _repeated(column, ordered):
  """Returns a remark on a repeated number far from all others, or ''."""
  for end in ordered[:1], ordered[-1:]:
    others = ordered[ordered != end]
    count = ordered.size - others.size
    if count < 3 or not others.size:
      continue
    gap = max(end[0] - others[-1], others[0] - end[0])
    # Codes such as 0, 1, 5 have few numbers.
    if gap > others[-1] - others[0] and np.unique(others).size >= _CODES:
      return (
        f'{column!r} has the suspicious number {end[0]:.9g} in {count} rows, '
        f'the others lie between {others[0]:.4g} and {others[-1]:.4g}: does it '
        f'mark missing values? --missing_values={column}:{end[0]:.9g}'
      )
  return ''


def _cells(table, column, x, ordered):
  """Returns a remark on cells with a gap between them and all others, or ''."""
  if ordered.size < _FEWEST:
    return ''
  half = ordered.size // 2
  distance = abs(ordered - ordered[half])
  limit = _FAR_CELL * _NORMAL * np.partition(distance, half)[half]
  last = np.sort(np.concatenate([distance[:4], distance[-4:]]))[-4:]
  if not limit or last[-1] <= limit:
    return ''
  # The largest numbers of a skewed column have no such gap.
  is_gap = last[1:] > np.maximum(3 * last[:-1], limit)
  others = ordered[distance <= last[is_gap.argmax()]]
  if not is_gap.any() or np.unique(others).size < _CODES:
    return ''
  far = np.flatnonzero((x < others[0]) | (x > others[-1]))
  rows = table.texts.index[far]
  told = ', '.join(f'{x[at]:.9g} in row {row}' for at, row in zip(far, rows))
  return (
    f'{column!r} has {told}, far from all others, which lie between '
    f'{others[0]:.4g} and {others[-1]:.4g}: correct the cell if it is an error'
  )


def far_sites(table: Table) -> Iterator[str]:
  """Finds columns in which one site has another mean than the others."""
  names, site = table.sites
  columns_of_x = [
    None if value is not None or table.is_record_number(column) else column
    for column, value in table.features
  ]
  yield from far_means(
    [f'site {str(name)!r}' for name in names],
    columns_of_x,
    [
      moments_lib.Moments.of(table.rows.x[site == k]) for k in range(names.size)
    ],
  )


def far_means(
  names: Sequence[str],
  features: Sequence[str | None],
  moments: Sequence[moments_lib.Moments],
) -> Iterator[str]:
  """Finds features in which one site has another mean than the others.

  The unit of the distance is the standard deviation within sites.

  Args:
    features: Columns of the features; None for those that are not checked.
  """
  size, mean, scatter = map(np.stack, zip(*moments))
  count, total = size.sum(axis=0), size * mean
  spread = np.sqrt(scatter.sum(axis=0) / np.maximum(1, count - len(names)))
  rest = (total.sum(axis=0) - total) / np.maximum(count - size, 1)
  enough = np.minimum(size, count - size) >= _FEWEST_AT_SITE
  gap = abs(mean - rest) * enough
  for place, column in enumerate(features):
    at = gap[:, place].argmax()
    # A column that is constant at each site has another finding.
    if column and 0 < _FAR_SITE * spread[place] < gap[at, place]:
      yield (
        f'{names[at]} has the mean {mean[at, place]:.4g} in {column!r}, the '
        f'others {rest[at, place]:.4g}: the distance is '
        f'{gap[at, place] / spread[place]:.1f} standard deviations within '
        'sites. Has the site another unit?'
      )


def constants(table: Table) -> Iterator[str]:
  """Finds columns that vary between sites only."""
  sites = table.rows.sites
  fixed = [
    feature.column
    for feature, x in zip(table.features, table.rows.x.T, strict=True)
    if sites and np.ptp(x) and not any(np.ptp(x[rows]) for _, rows in sites)
  ]
  if fixed:
    yield (
      f'constant within each site: {", ".join(dict.fromkeys(fixed))}. Such '
      'columns need more rounds, or --method=pvi'
    )


def alike(table: Table) -> Iterator[str]:
  """Finds categories, classes and sites that look alike."""
  texts: dict[str, list[str]] = {
    table.label: [*table.names],
    table.site: [*map(str, table.sites[0])],
  }
  for column, value in table.features:
    if value:
      texts.setdefault(column, []).append(value)
  for column, values in texts.items():
    groups: dict[str, list[str]] = {}
    for name in values:
      same = unicodedata.normalize('NFKC', name).casefold().split()
      groups.setdefault(' '.join(same), []).append(name)
    pairs = [' and '.join(group) for group in groups.values() if len(group) > 1]
    if pairs:
      yield (
        f'{column!r} has {", ".join(pairs[:5])}, which look alike: they count '
        'as different'
      )


CHECKS = (
  equal_rows, persons, record_numbers, dates, far_cells, far_sites, constants,
  alike,
)  # fmt: skip
