"""A table of one's own: labels by text, sites by column, bad cells by name."""

import csv

import numpy as np
import pytest

from bfl_tf import datasets
from bfl_tf.datasets import shares, unlabeled

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
  return datasets.load(path, **{'client_column': 'site', **options})


def test_a_table(tmp_path):
  lines = list(rows())
  dataset = load(write(tmp_path, lines), calibration_fraction=0.25)
  assert dataset.class_names == ('red', 'rose', 'white')
  assert dataset.feature_names == ('ash', 'hue')
  assert dataset.num_classes == 3
  assert dataset.train.x.dtype == np.float32
  # Every row is in one share, with its own features, label and site.
  found = [
    (*x.tolist(), dataset.class_names[y], i)
    for part, ids in (
      (dataset.train, dataset.client_ids),
      (dataset.calibration, dataset.calibration_ids),
      (dataset.test, dataset.test_ids),
    )
    for x, y, i in zip(*part, ids, strict=True)
  ]
  wanted = [
    (np.float32(r[0]).item(), np.float32(r[2]).item(), r[3], r[1])
    for r in lines
  ]
  assert sorted(found) == sorted(wanted)
  sizes = {s: sum(r[1] == s for r in lines) for s in 'abc'}
  for site, size in sizes.items():
    tested = round(0.2 * size)
    assert np.sum(dataset.test_ids == site) == tested
    assert np.sum(dataset.calibration_ids == site) == round(
      0.25 * (size - tested)
    )


def test_shares_are_the_same_for_every_seed_and_but_for_ones_own_rows(tmp_path):
  first, again = (
    load(write(tmp_path, rows()), validation_split=0.2, seed=seed)
    for seed in (0, 1)
  )
  np.testing.assert_array_equal(first.test.x, again.test.x)
  assert not np.array_equal(first.validation.x, again.validation.x)
  fewer = [r for r in rows() if r[1] != 'a']
  other = load(write(tmp_path, fewer), validation_split=0.2)
  for site in 'bc':
    np.testing.assert_array_equal(
      first.test.x[first.test_ids == site],
      other.test.x[other.test_ids == site],
    )


def test_labels_that_are_numbers(tmp_path):
  lines = list(rows(labels=('10', '9', '1')))
  dataset = load(write(tmp_path, lines))
  assert dataset.class_names == ('1', '9', '10')
  # As they are where others are to come.
  dataset = load(write(tmp_path, lines), num_classes=12)
  assert dataset.num_classes == len(dataset.class_names) == 12
  assert set(dataset.train.y) == {1, 9, 10}


def test_what_spreadsheets_write(tmp_path):
  path = write(tmp_path, rows(), encoding='utf-8-sig')
  with open(path, 'a') as file:
    file.write('\n\n')
  assert load(path).feature_names == ('ash', 'hue')
  # A line break within quotes is within a row.
  broken = [*rows()]
  broken[0][1], broken[5][0] = 'a\nsite', ''
  with pytest.raises(ValueError, match="row 7, column 'ash' is empty"):
    load(write(tmp_path, broken))
  quoted = [[r[0], f'{r[1]}, Inc.', f' {r[2]} ', r[3]] for r in rows()]
  assert set(load(write(tmp_path, quoted)).client_ids) == {
    f'{s}, Inc.' for s in 'abc'
  }


def test_without_sites_and_columns_left_out(tmp_path):
  dataset = datasets.load(
    write(tmp_path, rows()), ignore_columns=('site', 'hue')
  )
  assert dataset.feature_names == ('ash',)
  assert dataset.client_ids is None
  assert len(dataset.test.y) == 12


@pytest.mark.parametrize(
  'labels, names',
  [
    (('10', '9', '0'), ('0', '9', '10')),
    (('10.0', '9.0', '0.0'), ('0.0', '9.0', '10.0')),
    (('1', '-1', '0'), ('-1', '0', '1')),
    (('inf', 'nil', '2'), ('2', 'inf', 'nil')),
  ],
)
def test_whole_numbers_are_ordered_by_value(tmp_path, labels, names):
  dataset = load(write(tmp_path, rows(labels=labels)))
  assert dataset.class_names == names


def test_server_data_has_the_columns_by_name(tmp_path):
  like = load(write(tmp_path, rows()))
  path = write(
    tmp_path, [['1', 'x', '2'], ['3', 'y', '4']], 'server.csv',
    ['hue', 'note', 'ash'],
  )  # fmt: skip
  read = unlabeled.load_unlabeled(path, split='train', like=like, resize=False)
  assert read.tolist() == [[2, 1], [4, 3]]
  bad = write(tmp_path, [['1']], 'bad.csv', ['hue'])
  with pytest.raises(ValueError, match=r"bad\.csv has no column 'ash', which"):
    unlabeled.load_unlabeled(bad, split='train', like=like, resize=False)


def change(row, column, text):
  lines = list(rows())
  lines[row][HEADER.index(column)] = text
  return lines


# By what the line must say: lines, and flags.
BAD = {
  "row 5, column 'hue' is empty: fill it in": (change(3, 'hue', ''), {}),
  "row 5, column 'hue' has 'NA', which is no number": (
    change(3, 'hue', 'NA'), {},
  ),
  "row 3, column 'ash' has 'nan', which is not finite": (
    change(1, 'ash', 'nan'), {},
  ),
  "row 3, column 'ash' has '1e99', which is not finite": (
    change(1, 'ash', '1e99'), {},
  ),
  "row 9, column 'label' is empty": (change(7, 'label', ''), {}),
  "row 9, column 'site' is empty": (change(7, 'site', ' '), {}),
  'row 61 has 3 cells, the header 4': ([*rows(59), ['1', 'a', '2']], {}),
  "site 'alone' has 1 example": ([*rows(), ['1', 'alone', '2', 'red']], {}),
  "no column 'cultivar', which --label_column names; it has ash, site": (
    rows(), {'label_column': 'cultivar'},
  ),
  "no column 'region', which --client_column names": (
    rows(), {'client_column': 'region'},
  ),
  "no column 'id', which --ignore_columns names": (
    rows(), {'ignore_columns': ('id',)},
  ),
  "column 'label' has fractions, a regression target": (
    rows(labels=('0.5', '1', '2')), {},
  ),
  "column 'label' has '1' and '1.0' for one number: spell a class in": (
    rows(labels=('0', '1', '1.0')), {},
  ),
  "column 'label' has label 2, unseen by --num_classes=2": (
    rows(labels=('0', '1', '2')), {'num_classes': 2},
  ),
  r'--num_classes=4: .* has 3 texts \(red, rose, white\)': (
    rows(), {'num_classes': 4},
  ),
  "row 3, column 'ash' has '1_0', which is no number": (
    change(1, 'ash', '1_0'), {},
  ),
  "row 9, column 'label' has 'NA', a missing value": (
    change(7, 'label', 'NA'), {},
  ),
  "calibration_fraction=0.9 holds all of class 'cider' out: lower it": (
    [*rows(), *[['1', 'a', '2', 'cider']] * 2],
    {'calibration_fraction': 0.9},
  ),
  "class 'cider' has too few rows: all are held out": (
    [*rows(), ['1', 'd', '2', 'cider'], *[['1', 'd', '2', 'red']] * 3],
    {'test_fraction': 0.7},
  ),
  'no column left to be a feature': (
    rows(), {'ignore_columns': ('ash', 'hue')},
  ),
  'has no row below its header': ([], {}),
  '--test_fraction=0 leaves no test example': (rows(), {'test_fraction': 0.0}),
  '--train_split=x': (rows(), {'train_split': 'x'}),
}  # fmt: skip


@pytest.mark.parametrize('message', BAD)
def test_bad_tables(tmp_path, message):
  lines, options = BAD[message]
  with pytest.raises(ValueError, match=message) as raised:
    load(write(tmp_path, lines), **options)
  assert '\n' not in str(raised.value)


@pytest.mark.parametrize(
  'content, message',
  [
    (b'', 'is empty: its first row names the columns'),
    (b'a;b;label\n1;2;x\n', "must be separated by commas, got 'a;b;label'"),
    (b'a,a,label\n1,2,x\n', "a name of its own, got 'a'"),
    (b'a,,label\n1,2,x\n', "a name of its own, got ''"),
    (b'a,label\n1,\xff\n', 'cannot be read as a .csv file'),
    (b'a,label\n"1,x\n', 'cannot be read as a .csv file'),
    (None, 'cannot be read as a .csv file: No such file'),
  ],
)
def test_files_that_are_none(tmp_path, content, message):
  path = tmp_path / 'file.csv'
  if content is not None:
    path.write_bytes(content)
  with pytest.raises(ValueError, match=message):
    datasets.load(str(path))


@pytest.mark.parametrize(
  'name, options, message',
  [
    ('wine', {'client_column': 'site'}, '--client_column=site is for a .csv'),
    ('wine', {'test_fraction': 0.5}, 'brings its own test examples'),
    ('wine', {'num_classes': 4}, '--num_classes=4: --dataset=wine has 3'),
  ],
)
def test_flags_that_other_sets_do_not_take(name, options, message):
  with pytest.raises(ValueError, match=message):
    datasets.load(name, **options)


def test_a_calibration_share_of_any_set():
  whole = datasets.load('digits')
  dataset = datasets.load('digits', calibration_fraction=0.25)
  assert len(dataset.calibration.y) == round(0.25 * len(whole.train.y))
  both = np.sort(
    np.concatenate(
      [dataset.rows, np.setdiff1d(whole.row_numbers, dataset.rows)]
    )
  )
  np.testing.assert_array_equal(both, whole.row_numbers)
  np.testing.assert_array_equal(whole.train.x[dataset.rows], dataset.train.x)
  with pytest.raises(ValueError, match='brings its own calibration'):
    shares.take_calibration(dataset, 0.1)


def test_a_name_in_capitals_and_columns_with_commas(tmp_path):
  header = ['ash', 'site', 'hue, kg', 'label']
  path = write(tmp_path, rows(), 'TABLE.CSV', header)
  dataset = datasets.load(path, ignore_columns=('hue, kg', 'site'))
  assert dataset.feature_names == ('ash',)


def test_numbers_that_float32_does_not_tell_apart(tmp_path):
  rng = np.random.default_rng(0)
  seconds = 1_700_000_000 + 20 * (np.arange(60) % 2) + rng.normal(size=60)
  lines = [[0.1 + 1e-17 * i, s, i % 2] for i, s in enumerate(seconds)]
  path = write(tmp_path, lines, 'times.csv', ['constant', 'seen', 'label'])
  message = "column 'seen' goes from 1.* float32 has too few numbers"
  with pytest.raises(ValueError, match=message):
    datasets.load(path)
  near = [[c, s - 1_700_000_000, y] for c, s, y in lines]
  path = write(tmp_path, near, 'near.csv', ['constant', 'seen', 'label'])
  assert datasets.load(path).feature_names == ('constant', 'seen')
  # As dates are written, they differ by enough.
  dates = [[20240100 + i, i % 2] for i in range(28)]
  datasets.load(write(tmp_path, dates, 'dates.csv', ['date', 'label']))
  x, y = seconds[:, np.newaxis], np.arange(60) % 2
  np.savez(tmp_path / 'times.npz', x=x, y=y)
  with pytest.raises(ValueError, match='feature 0 of x goes from 1'):
    datasets.load(str(tmp_path / 'times.npz'))
  with pytest.raises(ValueError, match='feature 0 of x_train goes from 1'):
    datasets.from_arrays('ours', x, y, x, y)
