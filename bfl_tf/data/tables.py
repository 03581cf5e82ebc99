"""Data sets from tables, with columns of labels and of sites."""

from collections.abc import Iterable
import dataclasses
import pathlib
import re
from typing import Any

import numpy as np

from bfl_tf.data import (
  arrays,
  columns,
  csv_files,
  dataset_config,
  encoding,
  findings,
)
from bfl_tf.data import names as names_lib

_NUMBER = re.compile(r'-?\d{1,9}(\.0*)?')


def load(
  reading: dataset_config.DatasetConfig, is_numeric: bool = False
) -> columns.Dataset:
  """Returns a table as a data set of training examples."""
  where, notation = f'--dataset={reading.dataset}', reading.notation
  table = csv_files.read(where, reading.dataset, notation)
  label, site = reading.label_column, reading.client_column
  group = reading.group_column
  together = [*filter(None, [site, group])]
  apart = [label, *together]
  for flag, wanted in {
    'label_column': [label],
    'client_column': [*filter(None, [site])],
    'group_column': [*filter(None, [group])],
    'ignore_columns': reading.ignore_columns,
    'categorical_columns': reading.categorical_columns,
    'missing_values': [
      mark.partition(':')[0]
      for mark in notation.missing_values
      if ':' in mark and not any(mark.startswith(f'{c}:') for c in table)
    ],
  }.items():
    csv_files.check_columns(where, table, wanted, f'which --{flag} names')
  columns_of_x = table.drop(columns=[*apart, *reading.ignore_columns])
  if not columns_of_x.columns.size:
    raise ValueError(f'{where} has no column left to use as a feature.')
  for name in apart:
    missing = notation.of(name).is_missing(table[name])
    for row, cell in table[name][missing].items():
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
  rows = columns.Split(
    x,
    y,
    np.array(table[site], str) if site else None,
    # The same number at two sites may be two persons.
    table.groupby(together).ngroup().to_numpy() if group else None,
  )
  known = len(names) or reading.num_classes
  read = findings.Table(
    table.drop(columns=apart), rows, features, names, label, site, notation
  )
  if not group:
    rows = rows._replace(groups=findings.copies(rows, read.numbers))
  return dataclasses.replace(
    arrays.from_splits(reading.dataset, known, rows),
    class_names=names,
    features=features,
    notation=notation,
    notes=tuple(_notes(reading, read)),
  )


def _notes(reading, table):
  """Yields a description of a table, and its findings."""
  name = pathlib.PurePath(reading.dataset).name
  rows, (sites, _) = table.rows, table.sites
  size = f'{len(rows.y)} rows' + (f', {sites.size} sites' if table.site else '')
  yield f'{name}: {size}: {encoding.describe(rows.x, table.features)}'
  if not reading.quiet_data:
    yield from (f'warning: {name}: {line}' for line in findings.lines(table))


def classes(
  where: str, reading: dataset_config.DatasetConfig, cells: Any
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Numbers the labels in order: integers by value, other labels by text.

  If `num_classes` is set, integers from 0 are unchanged. Returns int32
  `[len(cells)]`, and the names of all classes.
  """
  column = f'{where}: column {cells.name!r}'
  names = ordered(f'{column} has', {*cells})
  if cells.name not in reading.categorical_columns:
    values = reading.notation.of(cells.name).numbers(cells)
    if np.any(np.isfinite(values) & (values % 1 != 0)):
      raise ValueError(
        f'{column} has fractions: for regression, set --likelihood=gaussian; '
        'for classes, list the column in --categorical_columns.'
      )
    words = cells[np.isnan(values)]
    csv_files.check_notation(words, cells, reading.notation, f'{column} has ')
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
  numbers = notation.of(cells.name).numbers(cells)
  for row, text in cells[np.isnan(numbers)].items():
    remedy = notation.remedy(text, cells)
    raise ValueError(
      f'{where}: column {cells.name!r} has {text!r} in row {row}, which is not '
      f'a number: correct it, {f"set {remedy}, " if remedy else ""}or set '
      '--likelihood=categorical.'
    )
  return arrays.numbers(f'{where}: column {cells.name!r}', numbers)
