"""Tests of tables in other notations, and of remarks on their cells."""

import numpy as np
import pytest

from bfl_tf import data
from bfl_tf.data import table_format

SITES = {'client_column': 'site'}


def write(folder, column='dose', cells=('1', '2', '3'), name='t.csv', **others):
  """Writes 60 rows with a number, a column whose cells repeat, site, label."""
  mark = others.pop('mark', ',')
  rng = np.random.default_rng(0)
  columns = {
    'age': [f'{value}' for value in rng.integers(100, size=60)],
    'site': ['a', 'b', 'c'],
    'label': ['no', 'yes'],
    column: cells,
    **others,
  }
  lines = [mark.join(columns)]
  for row in range(60):
    lines.append(mark.join(of[row % len(of)] for of in columns.values()))
  path = folder / name
  path.write_text('\n'.join(lines), encoding='utf-8')
  return str(path)


@pytest.mark.parametrize(
  'cells, flags, numbers',
  [
    (['"0,5"', '"-1,0"'], {'decimal': ','}, [0.5, -1]),
    (['"3,600"', '40'], {'thousands': ','}, [3600, 40]),
    (['"1.234,5"', '2'], {'decimal': ',', 'thousands': '.'}, [1234.5, 2]),
    (['1 234.5', '1\xa0200'], {'thousands': 'space'}, [1234.5, 1200]),
    (["1'234", '2'], {'thousands': "'"}, [1234, 2]),
    (['45%', '5 %'], {}, [0.45, 0.05]),
    (['45%', 'NA'], {}, [0.45, np.nan]),
    (['-999', '-999.0', '3'], {'missing_values': ('-999',)},
     [np.nan, np.nan, 3]),
    (['none', '3'], {'missing_values': ('none',)}, [np.nan, 3]),
    (['9', '-1:0', '3'], {'missing_values': ('dose:9', 'dose:-1:0', 'age:3')},
     [np.nan, np.nan, 3]),
  ],
)  # fmt: skip
def test_numbers_in_another_notation_are_read(tmp_path, cells, flags, numbers):
  dataset = data.load(write(tmp_path, cells=cells), **flags)
  at = dataset.features.index(('dose', None))
  found = {f'{value:g}' for value in dataset.train.x[:, at]}
  assert found == {f'{value:g}' for value in np.float32(numbers)}
  # Rows to predict are read in the same way.
  again = data.rows_like(
    write(tmp_path, cells=cells, name='new.csv'), dataset.features,
    notation=dataset.notation,
  )  # fmt: skip
  np.testing.assert_array_equal(again[: len(numbers), at], np.float32(numbers))


@pytest.mark.parametrize(
  'cells, pattern',
  [
    (['"0,5"', '"-1,0"'], r"'0,5' in row 2 .*--decimal=,"),
    (['low', '"1,234.5"'], r"'1,234.5' in row 3 .*--thousands=,"),
    (['"3,600"', '40'], '--decimal=, or --thousands=,'),
    (['"1.234,5"', '2'], '--decimal=, --thousands=[.]'),
    (['1 234', '2'], '--thousands=space'),
    (['45%', '5'], '%'),
  ],
)
def test_numbers_as_texts_are_rejected(tmp_path, cells, pattern):
  path = write(tmp_path, cells=cells)
  with pytest.raises(ValueError, match=f"'dose'.*{pattern}"):
    data.load(path)
  dataset = data.load(path, categorical_columns=('dose',))
  assert ('dose', cells[0].strip('"')) in dataset.features


@pytest.mark.parametrize(
  'name, mark, flag', [('t.csv', ';', ';'), ('t.csv', '\t', 'tab'),
                       ('t.tsv', ',', ',')]
)  # fmt: skip
def test_another_separator_is_named_and_read(tmp_path, name, mark, flag):
  path = write(tmp_path, name=name, mark=mark)
  with pytest.raises(ValueError, match=f'--separator={flag!r}'):
    data.load(path)
  dataset = data.load(path, separator=flag)
  wanted = data.load(write(tmp_path, name='usual.csv'))
  np.testing.assert_array_equal(dataset.train.x, wanted.train.x)


def test_a_tsv_has_tabs(tmp_path):
  path = write(tmp_path, name='T.TSV', mark='\t')
  assert len(data.load(path, **SITES).train.sites) == 3


BAD = {
  "'site' has '01' and '1'": ({'site': ['1', '1.0', '01']}, SITES),
  "'site' has '=1.1'": ({'site': ['=1+1', 'b', 'c']}, SITES),
  '--decimal=, and --thousands=,': ({}, {'decimal': ',', 'thousands': ','}),
  "'label' has the number '0,5'.*--decimal": (
    {'label': ['"0,5"', '"1,5"']}, {},
  ),
  "column 'agee', which --missing_values": (
    {}, {'missing_values': ('agee:9',)},
  ),
  '--min_site_examples=2: .*no site': ({}, {'min_site_examples': 2}),
  '--min_site_examples=21': ({}, {**SITES, 'min_site_examples': 21}),
}  # fmt: skip


@pytest.mark.parametrize('pattern', BAD)
def test_a_bad_table_is_rejected(tmp_path, pattern):
  table, flags = BAD[pattern]
  with pytest.raises(ValueError, match=pattern):
    data.load(write(tmp_path, **table), **flags)


def test_small_sites_are_left_out_and_listed(tmp_path):
  site = [*'ab' * 29, 'tiny', 'b']
  path = write(tmp_path, site=site)
  with pytest.raises(ValueError, match='--min_site_examples'):
    data.load(path, **SITES)
  dataset = data.load(path, **SITES, min_site_examples=2)
  assert "'tiny' (1)" in dataset.notes[-1]
  for split in (dataset.train, dataset.test):
    assert {*split.ids} == {'a', 'b'}
  assert dataset.row_numbers.max() == 59 and 58 not in dataset.row_numbers


@pytest.mark.parametrize('text', ['1,0', '12.05.2020', '1-2', 'ab', '1,23,4'])
def test_dates_and_codes_are_not_numbers(text):
  remedy = table_format.DEFAULT.remedy(text, [text])
  assert bool(remedy) == (text == '1,0')
