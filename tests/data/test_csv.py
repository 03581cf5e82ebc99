"""Tests of .csv data sets."""

import re

import numpy as np
import pytest
import toys

from bfl_tf import data
from bfl_tf.data import preprocessing

HEADER = ['ash', 'site', 'hue', 'label']


def rows(num_rows=60, labels=('red', 'white', 'rose')):
  rng = np.random.default_rng(0)
  for i in range(num_rows):
    ash, hue = rng.normal(size=2)
    yield [f'{ash:.3f}', 'abc'[i * i % 7 % 3], f'{hue:.3f}', labels[i % 3]]


def write(folder, lines, name='wine.csv', header=HEADER):
  return toys.write_table(folder / name, [header, *lines])


def load(path, **options):
  return data.load(path, **{'client_column': 'site', **options})


def names(dataset):
  return [f.column for f in dataset.features if f.value is None]


def test_every_row_of_a_table_is_in_exactly_one_share(tmp_path):
  lines = list(rows())
  dataset = load(write(tmp_path, lines), calibration_fraction=0.25)
  assert dataset.class_names == ('red', 'rose', 'white')
  assert names(dataset) == ['ash', 'hue']
  # Every row is in one share, with its own features, label and site.
  found = [
    (*x.tolist(), dataset.class_names[y], i)
    for part in (dataset.train, dataset.calibration, dataset.test)
    for x, y, i in zip(*part[:3], strict=True)
  ]
  wanted = [
    (np.float32(r[0]).item(), np.float32(r[2]).item(), r[3], r[1])
    for r in lines
  ]
  assert sorted(found) == sorted(wanted)


def test_byte_order_marks_quotes_and_blank_lines_are_read(tmp_path):
  header = ['\ufeffash', 'site', 'hue, kg', 'label']
  quoted = [[r[0], f'{r[1]}, Inc.', f' {r[2]} ', r[3]] for r in rows()]
  dataset = load(write(tmp_path, [*quoted, [], []], 'TABLE.CSV', header))
  assert names(dataset) == ['ash', 'hue, kg']
  assert set(dataset.train.ids) == {f'{s}, Inc.' for s in 'abc'}


def test_a_table_may_have_no_sites_and_columns_may_be_ignored(tmp_path):
  dataset = data.load(write(tmp_path, rows()), ignore_columns='site,hue')
  assert names(dataset) == ['ash']
  assert dataset.train.ids is None
  assert len(dataset.test.y) == 12


@pytest.mark.parametrize(
  'labels, num_classes, names',
  [
    (('10', '9', '0'), 0, ('0', '9', '10')),
    # With `num_classes`, labels are class indices.
    (('3', '2', '0'), 4, ('0', '1', '2', '3')),
    (('1', '-1', '0'), 0, ('-1', '0', '1')),
    (('inf', 'nil', '2'), 0, ('2', 'inf', 'nil')),
  ],
)
def test_integer_labels_are_ordered_by_value(
  tmp_path, labels, num_classes, names
):
  path = write(tmp_path, rows(labels=labels))
  dataset = load(path, num_classes=num_classes)
  assert dataset.class_names == names
  assert {names[c] for c in dataset.train.y} == {*labels}


def test_missing_values_and_categories_are_encoded(tmp_path):
  lines = [
    ['' if i % 5 == 0 else f'{i}.5', ('lab', '?', 'ward')[i % 3],
     ('0.10', '1.0')[i % 2], 'xy'[i % 4 // 2]]
    for i in range(40)
  ]  # fmt: skip
  header = ['age', 'place', 'code', 'label']
  path = write(tmp_path, lines, header=header)
  # The categories of `code` are texts, where 1.0 is the same as 1.
  dataset = data.load(path, categorical_columns=('code',))
  assert [*map(tuple, dataset.features)] == [
    ('age', None), ('age', ''), ('place', ''), ('place', 'lab'),
    ('place', 'ward'), ('code', '0.10'), ('code', '1'),
  ]  # fmt: skip
  by_hand = {
    tuple(np.nan_to_num(
      [float(age or 'nan'), age == '', place == '?', place == 'lab',
       place == 'ward', code == '0.10', code == '1.0'], nan=-1.0
    ))
    for age, place, code, _ in lines
  }  # fmt: skip
  x = np.concatenate([dataset.train.x, dataset.test.x])
  assert {tuple(row) for row in np.nan_to_num(x, nan=-1.0)} == by_hand
  # A missing value becomes the mean by normalization.
  scaled = preprocessing.normalize(x, dataset.mean, dataset.std).numpy()
  assert np.all(scaled[np.isnan(x)] == 0) and np.isfinite(scaled).all()
  # The columns have another order, and values are missing.
  new = [['1', 'ward', '3.5', 'q'], ['0.10', '', 'NA', 'r']]
  header = ['code', 'place', 'age', 'note']
  wanted = [[3.5, 0, 0, 0, 1, 0, 1], [np.nan, 1, 1, 0, 0, 1, 0]]
  path = write(tmp_path, new, 'new.csv', header)
  np.testing.assert_array_equal(data.rows_like(path, dataset.features), wanted)
  reading = {'split': 'train', 'like': dataset, 'resize': False}
  np.testing.assert_array_equal(data.load_unlabeled(path, **reading), wanted)
  bad = [['', 'ward', '3.5', 'q'], *new, ['1', 'roof', 'ten', 'r']]
  path = write(tmp_path, bad, 'bad.csv', header)
  named = "'ten' in row 5.*'roof'.*column 'code' has '' in row 2"
  with pytest.raises(ValueError, match=named):
    data.rows_like(path, dataset.features)
  path = write(tmp_path, new, 'bad.csv', ['code', 'ward', 'age', 'note'])
  with pytest.raises(ValueError, match="no column 'place'"):
    data.rows_like(path, dataset.features)


def test_all_examples_of_a_class_may_be_held_out(tmp_path):
  """A node's file may have few rows of a class."""
  lines = [*rows(), *[['1', 'a', '2', 'cider']] * 2]
  dataset = load(write(tmp_path, lines), calibration_fraction=0.9)
  assert dataset.class_names[0] == 'cider' and 0 not in dataset.train.y


def change(row, column, text):
  lines = list(rows())
  lines[row][HEADER.index(column)] = text
  return lines


# Lines of a table and flags, by a pattern of the error.
BAD = {
  "column 'hue' .*'forty' in row 6": (change(4, 'hue', 'forty'), {}),
  # This column has notes, which are empty in most rows.
  "column 'hue'": (
    [[*r[:2], f'note {i}' * (i < 10), r[3]] for i, r in enumerate(rows())],
    {},
  ),
  '--categorical_columns': (rows(), {'categorical_columns': ('id',)}),
  "row 9, column 'label' has 'NA'": (change(7, 'label', 'NA'), {}),
  'row 61': ([*rows(59), ['1', 'a', '2']], {}),
  "site 'alone' .*test_fraction": ([*rows(), ['1', 'alone', '2', 'red']], {}),
  'num_classes=2': (rows(labels=('0', '1', '2')), {'num_classes': 2}),
  # It is infinite in float32.
  "'1e39' in row 6": (change(4, 'hue', '1e39'), {}),
  r"site' has 'x\\ry'": (change(4, 'site', 'x\ry'), {}),
  'printable name': ([*rows()], {'header': ['a\x1b', *HEADER[1:]]}),
  'leaves no training example': (rows(9), {'validation_split': 0.99}),
  '--train_split': (rows(), {'train_split': 'x'}),
  **{
    re.escape(repr(name)): (rows(labels=('c', '-', name)), {})
    for name in ('a|b', '=1+1', '-ve', '@a', '-1+A1')
  },
}


@pytest.mark.parametrize('named', BAD)
def test_an_invalid_table_raises_an_error_that_names_the_cause(tmp_path, named):
  lines, options = BAD[named]
  path = write(tmp_path, lines, header=options.pop('header', HEADER))
  with pytest.raises(ValueError, match=named):
    load(path, **options)


def test_a_missing_file_is_named():
  with pytest.raises(ValueError, match='nowhere'):
    load('nowhere.csv')
