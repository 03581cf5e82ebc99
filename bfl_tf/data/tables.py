"""Data sets from tables, with columns of labels and of sites."""

from collections.abc import Iterable
import dataclasses
import pathlib
import re
from typing import Any
import unicodedata

import numpy as np

from bfl_tf.data import arrays, columns, csv_files, dataset_config, encoding
from bfl_tf.data import names as names_lib

_NUMBER = re.compile(r'-?\d{1,9}(\.0*)?')


def load(
  reading: dataset_config.DatasetConfig, is_numeric: bool = False
) -> columns.Dataset:
  """Returns a table as a data set of training examples."""
  where, notation = f'--dataset={reading.dataset}', reading.notation
  table = csv_files.read(where, reading.dataset, notation)
  _check_roles(where, reading, table, is_numeric)
  label, site = reading.label_column, reading.client_column
  apart = [label, *filter(None, [site])]
  columns_of_x = table.drop(columns=[*apart, *reading.ignore_columns])
  if not columns_of_x.columns.size:
    raise ValueError(f'{where} has no column left to use as a feature.')
  for name in apart:
    for row, cell in table[name][notation.is_missing(table[name])].items():
      raise ValueError(
        f'{where}: row {row}, column {name!r} has {cell!r}: write a value, or '
        'remove the row.'
      )
  if site and site not in reading.categorical_columns:
    ordered(f'{where}: column {site!r} has', {*table[site]})
  x, features = csv_files.encode(
    where, columns_of_x, reading.categorical_columns, (), notation
  )
  y, names = (
    (_numbers(where, table[label], notation), ())
    if is_numeric
    else classes(where, reading, table[label])
  )
  rows = columns.Split(x, y, np.array(table[site], str) if site else None)
  known = len(names) or reading.num_classes
  return dataclasses.replace(
    arrays.from_splits(reading.dataset, known, rows),
    class_names=names,
    features=features,
    notation=notation,
    notes=tuple(_notes(reading, rows, features, names)),
  )


def _check_roles(where, reading, table, is_numeric):
  """Rejects columns that are missing or have two contradictory roles."""
  roles: dict[str, str] = {}
  for flag in dataset_config.COLUMNS:
    value = getattr(reading, flag)
    named = [*value] if isinstance(value, tuple) else [value]
    if flag == 'client_column':
      named = [*filter(None, named)]
    csv_files.check_columns(where, table, named, f'which --{flag} names')
    # Labels and sites that are listed as categorical are read as texts.
    texts = ('client_column', *([] if is_numeric else ['label_column']))
    for name in dict.fromkeys(named):
      other = roles.setdefault(name, flag)
      allowed = flag == 'categorical_columns' and other in texts
      if other != flag and not allowed:
        raise ValueError(
          f'{where}: --{flag} and --{other} both name the column {name!r}: '
          'remove it from one of them.'
        )


def _notes(reading, rows, features, names):
  """Yields a description of a table, and warnings of suspicious cells."""
  name = pathlib.PurePath(reading.dataset).name
  sites = [site for site, _ in rows.sites]
  size = f'{len(rows.y)} rows' + (f', {len(sites)} sites' if sites else '')
  yield f'{name}: {size}: {encoding.describe(rows.x, features)}'
  fixed = [
    feature.column
    for feature, x in zip(features, rows.x.T)
    if np.ptp(x) and not any(np.ptp(x[of_site]) for _, of_site in rows.sites)
  ]
  if rows.sites and fixed:
    yield (
      f'warning: {name}: constant within each site: '
      f'{", ".join(dict.fromkeys(fixed))}. Such columns need more rounds, or '
      '--method=pvi'
    )
  numbers = {reading.label_column: rows.y} if rows.is_numeric else {}
  texts = {reading.label_column: names, reading.client_column: sites}
  for (column, value), x in zip(features, rows.x.T):
    if value is None:
      numbers[column] = x
    elif value:
      texts[column] = (*texts.get(column, ()), value)
  for remark, found, what in (
    (_sentinel, numbers, ': set the flag if the number marks missing values'),
    (_pairs, texts, ', which look alike: they count as different'),
  ):
    told = [f'{c!r} has {s}' for c in found if (s := remark(found[c]))]
    if told:
      yield f'warning: {name}: {"; ".join(told[:5])}{what}'


def _sentinel(values: np.ndarray) -> str:
  """Returns a remark on a repeated number far from all others, or ''."""
  found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
  for at, others in ((0, found[1:]), (-1, found[:-1])):
    # Codes such as 0, 1, 5 have few numbers.
    if counts.size < 6 or counts[at] < 3:
      continue
    gap = max(found[at] - others[-1], others[0] - found[at])
    if gap > np.ptp(others):
      return (
        f'the suspicious number {found[at]:.9g} in {counts[at]} rows, the '
        f'others lie between {others[0]:.4g} and {others[-1]:.4g} '
        f'(--missing_values={found[at]:.9g})'
      )
  return ''


def _pairs(names: Iterable[str]) -> str:
  """Returns the names that look alike, such as `No and no`, or ''."""
  groups: dict[str, list[str]] = {}
  for name in names:
    alike = unicodedata.normalize('NFKC', name).casefold().split()
    groups.setdefault(' '.join(alike), []).append(name)
  pairs = [' and '.join(group) for group in groups.values() if len(group) > 1]
  return ', '.join(pairs[:5])


def classes(
  where: str, reading: dataset_config.DatasetConfig, cells: Any
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Numbers the labels in order: integers by value, other labels by text.

  If `num_classes` is set, integers from 0 are unchanged. Returns int32
  `[len(cells)]`, and the names of all classes.
  """
  column = f'{where}: column {cells.name!r}'
  names = ordered(f'{column} has', {*cells})
  try:
    _check_texts(cells, reading)
  except ValueError as error:
    raise ValueError(f'{column} has {error}.') from error
  if reading.num_classes:
    if all(re.fullmatch(r'\d{1,9}', name) for name in names):
      known = tuple(map(str, range(reading.num_classes)))
      return cells.to_numpy().astype(np.int32), known
    if reading.num_classes != len(names):
      raise ValueError(
        f'--num_classes={reading.num_classes}: {column} has {len(names)} texts '
        f'({", ".join(names[:5])}); with more classes than are seen, labels '
        'must be integers from 0.'
      )
  numbers = {name: number for number, name in enumerate(names)}
  return np.array([numbers[name] for name in cells], np.int32), tuple(names)


def _check_texts(cells, reading):
  """Rejects labels that are fractions, or numbers in another notation."""
  if cells.name in reading.categorical_columns:
    return
  numbers = reading.notation.numbers(cells)
  if np.any(np.isfinite(numbers) & (numbers % 1 != 0)):
    raise ValueError(
      'fractions: for regression, set --likelihood=gaussian; for classes, list '
      'the column in --categorical_columns'
    )
  csv_files.check_notation(cells[np.isnan(numbers)], cells, reading.notation)


def ordered(where: str, names: Iterable[str]) -> list[str]:
  """Returns classes or sites in the order of their numbers.

  Unsafe names are rejected, and a number with two spellings such as 1 and 1.0.
  Programs write 1.0 if another row of the column is empty.
  """
  names = sorted(names)
  names_lib.check(where, names)
  numbers: dict[float, str] = {}
  for name in filter(_NUMBER.fullmatch, names):
    other = numbers.setdefault(float(name), name)
    if other != name:
      raise ValueError(
        f'{where} {other!r} and {name!r} for the same number: write it in one '
        'way, or list a column of sites in --categorical_columns.'
      )
  return sorted(names, key=float) if len(numbers) == len(names) else names


def _numbers(where, cells, notation):
  numbers = notation.numbers(cells)
  for row, text in cells[np.isnan(numbers)].items():
    remedy = notation.remedy(text, cells)
    raise ValueError(
      f'{where}: column {cells.name!r} has {text!r} in row {row}, which is not '
      f'a number: correct it, {f"set {remedy}, " if remedy else ""}or set '
      '--likelihood=categorical.'
    )
  return arrays.numbers(f'{where}: column {cells.name!r}', numbers)
