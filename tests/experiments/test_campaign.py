"""Each case of the campaign tries a few, counts them, and can tell."""

import json

import binaries
import pytest

from experiments.campaigns import books, outcomes

pytestmark = pytest.mark.process


def table(out):
  """By row of the table, its last two columns: tried and broken."""
  rows = [line.split() for line in out.splitlines() if line]
  return {row[0]: tuple(map(int, row[-2:])) for row in rows[1:]}


@pytest.mark.parametrize(
  ('case', 'count'),
  [('kills', 1), ('inputs', 30), ('updates', 4), ('files', 8)],
)
def test_nothing_breaks(tmp_path, case, count):
  code, out, error = binaries.run(
    'experiments.campaign', f'--case={case}', f'--count={count}',
    f'--output_dir={tmp_path}',
  )  # fmt: skip
  assert code == 0, out + error
  tried, broken = table(out)['all']
  assert tried >= count and broken == 0
  lines = (tmp_path / f'{case}-0' / 'trials.jsonl').read_text().splitlines()
  assert sum(sum(json.loads(x)['counts'].values()) for x in lines) == tried


@pytest.mark.slow
def test_soak(tmp_path):
  code, out, error = binaries.run(
    'experiments.campaign', '--case=soak', '--count=10',
    f'--output_dir={tmp_path}',
  )  # fmt: skip
  assert code == 0, out + error
  assert 'posterior_pooling: peak memory' in out


def test_a_book_goes_on_counting(tmp_path):
  path = tmp_path / 'trials.jsonl'
  book = books.Book(path)
  book.add(books.Trial('a', {'kept': 2}))
  book.add(books.Trial('b', {'lost': 1}, 'b lost its row'))
  path.write_text(path.read_text() + '{"group": "a", "cou')
  again = books.Book(path)
  assert again.trials == book.trials
  assert (again.count, again.broken) == (3, ['b lost its row'])
  assert [line.split() for line in again.table().splitlines()] == [
    ['kept', 'lost', 'all', 'broken'],
    ['a', '2', '0', '2', '0'],
    ['b', '0', '1', '1', '1'],
    ['all', '2', '1', '3', '1'],
  ]


def test_what_broke_is_code_1(tmp_path):
  folder = tmp_path / 'updates-0'
  folder.mkdir()
  trial = books.Trial('model', {'named': 5}, 'the model is another')
  books.Book(folder / 'trials.jsonl').add(trial)
  code, out, _ = binaries.run(
    'experiments.campaign', '--case=updates', '--count=5',
    f'--output_dir={tmp_path}',
  )  # fmt: skip
  assert code == 1
  assert out.endswith('broken: the model is another\n')


def test_a_difference_is_named():
  found = [['round'], ['0']], {'probs': b'1'}, {'nll': 1.0}, 3
  assert outcomes.difference(found, found) == ''
  other = (*found[:1], {'probs': b'2'}, {'nll': 2.0}, 3)
  assert outcomes.difference(found, other) == 'predictions.npz, summary.json'
