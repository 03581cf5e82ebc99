"""Tests of the warnings about misleading tables."""

import numpy as np
import pytest
from sklearn import datasets
import toys

from bfl_tf import data

SIZE = 120
PERSON = [f'{"abc"[i % 3]}{i % 30}' for i in range(SIZE)]


def write(path, columns):
  return toys.write_table(path, [columns, *zip(*columns.values(), strict=True)])


def table(**columns):
  """Returns a table without findings, with some columns changed."""
  rng = np.random.default_rng(0)
  return {
    'age': [*rng.integers(20, 90, SIZE)],
    'lactate': [*np.exp(rng.normal(size=SIZE)).round(3)],
    # In float32, these are whole numbers.
    'volume': [*rng.uniform(1e8, 2e8, SIZE).round(1)],
    'site': ['a', 'b', 'c'] * 40,
    'label': [*rng.choice(['no', 'yes'], SIZE)],
  } | columns


def findings(path, columns, **flags):
  """Returns the notes of a table but the first, its description."""
  flags = {'client_column': 'site', **flags}
  return data.load(write(path / 't.csv', columns), **flags).notes[1:]


def with_cell(row, cell):
  """Returns a column of normal numbers with another cell in one row."""
  numbers = [*np.random.default_rng(1).normal(90, 9, SIZE).round(1)]
  return numbers[:row] + [cell] + numbers[row + 1 :]


# Tables, and what their only finding names.
ONE = {
  'equal rows': (
    {name: cells[:30] * 4 for name, cells in table().items()}, ['90 of 120'],
  ),
  'persons with equal numbers of rows': (
    table(code=[str(i % 24) for i in range(SIZE)]), ["'code'", '24', '5 rows'],
  ),
  'persons of one site each': (
    table(code=[p if i % 4 else p[0] + '0' for i, p in enumerate(PERSON)]),
    ["'code'"],
  ),
  'record numbers': (table(number=[*range(7, 7 + SIZE)]), ["'number'"]),
  'date': (
    table(seen=['1.2.2024', '', '3.2.2024', '4.2.2024'] * 30), ["'seen'"],
  ),
  'time': (table(seen=['8:30', '12:00', '9:15', '0:00'] * 30), ["'seen'"]),
  'date as a number': (table(seen=[20240131, 20231201] * 60), ["'seen'"]),
  'cell': (table(sugar=with_cell(50, 9000)), ["'sugar'", '9000 in row 52']),
  'repeated number': (
    table(sugar=[-999 if i % 30 == 4 else x
                 for i, x in enumerate(with_cell(0, 90))]),
    ["'sugar'", '-999 in 4 rows'],
  ),
  'site': (
    table(sugar=[x / 18 if i % 3 == 1 else x
                 for i, x in enumerate(with_cell(0, 90))]),
    ["site 'b'", "'sugar'"],
  ),
}  # fmt: skip


@pytest.mark.parametrize('kind', ONE)
def test_a_finding_is_named(tmp_path, kind):
  columns, named = ONE[kind]
  (line,) = findings(tmp_path, columns)
  assert all(name in line for name in named)
  assert not findings(tmp_path, columns, quiet_data=True)


@pytest.mark.parametrize('name', ['wine', 'breast_cancer', 'digits'])
def test_real_tables_have_no_finding(tmp_path, name):
  real = getattr(datasets, f'load_{name}')()
  columns = {f'c{number}': [*x] for number, x in enumerate(real.data.T)}
  columns['label'] = [*real.target]
  assert not findings(tmp_path, columns, client_column='')
  assert not findings(tmp_path, table())


def test_copies_of_a_row_stay_in_one_share(tmp_path):
  whole = {name: cells[:30] * 4 for name, cells in table().items()}
  path = write(tmp_path / 't.csv', whole)
  dataset = data.load(path, client_column='', ignore_columns=('site',))
  train, test = (
    [row.tobytes() for row in np.column_stack([split.x, split.y])]
    for split in (dataset.train, dataset.test)
  )
  assert (len(train), len(test)) == (96, 24)
  assert not {*train} & {*test}
  # Equal answers of different persons are no copies.
  few = {'sex': ['f', 'm'] * 60, 'age': [30, 40] * 60, 'label': ['n', 'y'] * 60}
  path = write(tmp_path / 'few.csv', few)
  assert data.load(path, client_column='').train.groups is None
