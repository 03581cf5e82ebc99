"""Tests of .csv data sets."""

import csv
import re

import numpy as np
import pytest

from bfl_tf import data
from bfl_tf.data import preprocessing, unlabeled

HEADER = ['ash', 'site', 'hue', 'label']


def rows(num_rows=60, labels=('red', 'white', 'rose')):
  rng = np.random.default_rng(0)
  for i in range(num_rows):
    ash, hue = rng.normal(size=2)
    yield [f'{ash:.3f}', 'abc'[i * i % 7 % 3], f'{hue:.3f}', labels[i % 3]]


def write(folder, lines, name='wine.csv', header=HEADER, **options):
  path = folder / name
  with path.open('w', newline='', **options) as file:
    csv.writer(file).writerows([header, *lines])
  return str(path)


def load(path, **options):
  return data.load(path, **{'client_column': 'site', **options})


def names(dataset):
  return [f.column for f in dataset.features if f.value is None]


def test_every_row_of_a_table_is_in_exactly_one_share(tmp_path):
  lines = list(rows())
  dataset = load(write(tmp_path, lines), calibration_fraction=0.25)
  assert dataset.class_names == ('red', 'rose', 'white')
  assert names(dataset) == ['ash', 'hue']
  assert dataset.num_classes == 3
  assert dataset.train.x.dtype == np.float32
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
  sizes = {s: sum(r[1] == s for r in lines) for s in 'abc'}
  for site, size in sizes.items():
    tested = round(0.2 * size)
    assert np.sum(dataset.test.ids == site) == tested
    assert np.sum(dataset.calibration.ids == site) == round(
      0.25 * (size - tested)
    )


def test_byte_order_marks_quotes_and_blank_lines_are_read(tmp_path):
  header = ['ash', 'site', 'hue, kg', 'label']
  quoted = [[r[0], f'{r[1]}, Inc.', f' {r[2]} ', r[3]] for r in rows()]
  path = write(tmp_path, quoted, 'TABLE.CSV', header, encoding='utf-8-sig')
  with open(path, 'a', encoding='utf-8') as file:
    file.write('\n\n')
  dataset = load(path)
  assert names(dataset) == ['ash', 'hue, kg']
  assert set(dataset.train.ids) == {f'{s}, Inc.' for s in 'abc'}


def test_a_table_may_have_no_sites_and_columns_may_be_ignored(tmp_path):
  dataset = data.load(write(tmp_path, rows()), ignore_columns='site,hue')
  assert names(dataset) == ['ash']
  assert dataset.train.ids is None
  assert len(dataset.test.y) == 12


@pytest.mark.parametrize(
  'labels, names',
  [
    (('10', '9', '0'), ('0', '9', '10')),
    (('1', '-1', '0'), ('-1', '0', '1')),
    (('inf', 'nil', '2'), ('2', 'inf', 'nil')),
  ],
)
def test_integer_labels_are_ordered_by_value(tmp_path, labels, names):
  lines = [*rows(labels=labels)]
  assert load(write(tmp_path, lines)).class_names == names
  if names == ('0', '9', '10'):
    # With `num_classes`, labels are class indices.
    dataset = load(write(tmp_path, lines), num_classes=12)
    assert dataset.num_classes == len(dataset.class_names) == 12
    assert set(dataset.train.y) == {0, 9, 10}


def test_columns_of_server_data_are_matched_by_name(tmp_path):
  like = load(write(tmp_path, rows()))
  path = write(
    tmp_path, [['1', 'x', '2'], ['3', 'y', '4']], 'server.csv',
    ['hue', 'note', 'ash'],
  )  # fmt: skip
  read = unlabeled.load_unlabeled(path, split='train', like=like, resize=False)
  assert read.tolist() == [[2, 1], [4, 3]]
  bad = write(tmp_path, [['1']], 'bad.csv', ['hue'])
  with pytest.raises(ValueError, match="'ash'"):
    unlabeled.load_unlabeled(bad, split='train', like=like, resize=False)


def test_missing_values_and_categories_are_encoded(tmp_path):
  lines = [
    ['' if i % 5 == 0 else f'{i}.5', ('lab', '?', 'ward')[i % 3],
     f'{i % 2}.0', 'xy'[i % 4 // 2]]
    for i in range(40)
  ]  # fmt: skip
  header = ['age', 'place', 'sex', 'label']
  path = write(tmp_path, lines, header=header)
  dataset = data.load(path, categorical_columns=('sex',))
  assert [*map(tuple, dataset.features)] == [
    ('age', None), ('age', ''), ('place', ''), ('place', 'lab'),
    ('place', 'ward'), ('sex', '0'), ('sex', '1'),
  ]  # fmt: skip
  by_hand = {
    tuple(np.nan_to_num(
      [float(age or 'nan'), age == '', place == '?', place == 'lab',
       place == 'ward', sex == '0.0', sex == '1.0'], nan=-1.0
    ))
    for age, place, sex, _ in lines
  }  # fmt: skip
  x = np.concatenate([dataset.train.x, dataset.test.x])
  assert {tuple(row) for row in np.nan_to_num(x, nan=-1.0)} == by_hand
  # A missing value becomes the mean by normalization.
  scaled = preprocessing.normalize(x, dataset.mean, dataset.std).numpy()
  assert np.all(scaled[np.isnan(x)] == 0) and np.isfinite(scaled).all()
  # The columns have another order, and values are missing.
  new = [['1', 'ward', '3.5', 'q'], ['0.0', '', 'NA', 'r']]
  header = ['sex', 'place', 'age', 'note']
  path = write(tmp_path, new, 'new.csv', header)
  np.testing.assert_array_equal(
    data.rows_like(path, dataset.features),
    [[3.5, 0, 0, 0, 1, 0, 1], [np.nan, 1, 1, 0, 0, 1, 0]],
  )
  bad = [['', 'ward', '3.5', 'q'], *new, ['1', 'roof', 'ten', 'r']]
  path = write(tmp_path, bad, 'bad.csv', header)
  named = "'ten' in row 5.*'roof'.*column 'sex' has '' in row 2"
  with pytest.raises(ValueError, match=named):
    data.rows_like(path, dataset.features)


def test_specified_categorical_columns_may_have_rare_categories(tmp_path):
  lines = [[f'{i}', 'ABC'[i % 3], f'{i % 2}.10', 'xy'[i % 2]] for i in range(6)]
  path = write(tmp_path, lines, header=['age', 'ward', 'code', 'label'])
  with pytest.raises(ValueError, match="column 'ward'"):
    data.load(path)
  dataset = data.load(path, categorical_columns=('ward', 'code'))
  # Categories are texts and are not parsed as numbers.
  assert [f.value for f in dataset.features[1:]] == [*'ABC', '0.10', '1.10']


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
  "column 'hue' .*'inf' in row 6": (change(4, 'hue', 'inf'), {}),
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
  "'1e39' in row 6": (change(4, 'hue', '1e39'), {}),
  r"site' has 'x\\ry'": (change(4, 'site', 'x\ry'), {}),
  'printable name': ([*rows()], {'header': ['a\x1b', *HEADER[1:]]}),
  'leaves no training example': (rows(9), {'validation_split': 0.99}),
  '--train_split': (rows(), {'train_split': 'x'}),
}


def test_invalid_tables_raise_an_error_that_names_the_cause(tmp_path):
  for name in ('a|b', '=1+1', '-ve', '@a', '-1+A1'):
    path = write(tmp_path, rows(labels=('c', '-', name)))
    with pytest.raises(ValueError, match=re.escape(repr(name))):
      load(path)
  for named, (lines, options) in BAD.items():
    path = write(tmp_path, lines, header=options.pop('header', HEADER))
    with pytest.raises(ValueError, match=named):
      load(path, **options)
  with pytest.raises(ValueError, match='nowhere'):
    load('nowhere.csv')
