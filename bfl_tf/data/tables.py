"""Data sets from .csv files, with columns of labels and of sites."""

from collections.abc import Iterable, Sequence
import dataclasses
import itertools
import re

import numpy as np

from bfl_tf.data import arrays, columns, csv_files, dataset_config
from bfl_tf.data import names as names_lib

_FRACTION = re.compile(r'-?\d*\.\d*[1-9]\d*')


def load(
  reading: dataset_config.DatasetConfig, is_numeric: bool = False
) -> columns.Dataset:
  """Returns a .csv file as a data set of training examples."""
  where = f'--dataset={reading.dataset}'
  table = csv_files.read(where, reading.dataset)
  of_site = [reading.client_column] if reading.client_column else []
  for flag, named in (
    ('label_column', [reading.label_column]),
    ('client_column', of_site),
    ('ignore_columns', reading.ignore_columns),
    ('categorical_columns', reading.categorical_columns),
  ):
    csv_files.check_columns(where, table, named, f'which --{flag} names')
  apart = [reading.label_column, *of_site]
  unused = {*apart, *reading.ignore_columns}
  wanted = [name for name in table if name not in unused]
  if not wanted:
    raise ValueError(f'{where} has no column left to use as a feature.')
  for name in apart:
    gaps = table[name][table[name].isin(csv_files.MISSING)]
    for row, cell in gaps.items():
      raise ValueError(
        f'{where}: row {row}, column {name!r} has {cell!r}: write a value, or '
        'remove the row.'
      )
  x, features = csv_files.encode(
    where, table[wanted], reading.categorical_columns
  )
  texts = list(table[reading.label_column])
  names: tuple[str, ...] = ()
  if is_numeric:
    y = _numbers(f'{where}: column {reading.label_column!r}', texts)
  else:
    y, names = classes(where, reading, texts)
  ids = [np.array(table[name], str) for name in of_site]
  rows = columns.Split(x, y, ids[0] if ids else None)
  known = len(names) or reading.num_classes
  dataset = arrays.from_splits(reading.dataset, known, rows)
  return dataclasses.replace(dataset, class_names=names, features=features)


def classes(
  where: str, reading: dataset_config.DatasetConfig, texts: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Numbers the labels in order: integers by value, other labels by text.

  If `num_classes` is set, integers from 0 are unchanged.

  Returns:
    int32 `[len(texts)]`, and the names of all classes.
  """
  column = f'{where}: column {reading.label_column!r}'
  try:
    found = ordered(set(texts))
  except ValueError as error:
    raise ValueError(f'{column} has {error}.') from error
  if all(re.fullmatch(r'\d{1,9}', name) for name in found):
    if reading.num_classes:
      return _numbered(column, texts, reading.num_classes)
  elif any(_FRACTION.fullmatch(text) for text in found):
    raise ValueError(
      f'{column} has fractions: for regression, set --likelihood=gaussian.'
    )
  elif reading.num_classes not in (0, len(found)):
    raise ValueError(
      f'--num_classes={reading.num_classes}: {column} has {len(found)} texts '
      f'({", ".join(found[:5])}); with more classes than are seen, labels must '
      'be integers from 0.'
    )
  numbers = {text: number for number, text in enumerate(found)}
  return np.array([numbers[text] for text in texts], np.int32), tuple(found)


def ordered(names: Iterable[str]) -> list[str]:
  """Returns classes in the order of their numbers.

  Raises:
    ValueError: A name is unsafe, or a number has two spellings such as 1 and
      1.0. Programs write 1.0 if another row of the column is empty.
  """
  names = sorted(names)
  names_lib.check_classes(names)
  if not all(re.fullmatch(r'-?\d{1,9}(\.0*)?', name) for name in names):
    return names
  names = sorted(names, key=float)
  for one, other in itertools.pairwise(names):
    if float(one) == float(other):
      raise ValueError(
        f'{one!r} and {other!r} for the same number: write each class in one '
        'way'
      )
  return names


def _numbers(column, texts):
  for row, text in enumerate(texts, start=2):
    if not csv_files.is_number(text):
      raise ValueError(
        f'{column} has {text!r} in row {row}, which is not a number: '
        'correct it, or set --likelihood=categorical.'
      )
  return arrays.numbers(column, np.array(texts, np.float64))


def _numbered(column, texts, num_classes):
  y = np.array([int(text) for text in texts], np.int32)
  if y.max() >= num_classes:
    raise ValueError(
      f'{column} has label {y.max()}, but --num_classes={num_classes} allows '
      f'labels 0 to {num_classes - 1}.'
    )
  return y, tuple(map(str, range(num_classes)))
