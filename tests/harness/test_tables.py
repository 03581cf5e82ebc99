"""Tests of tables: scores, seeds, diverged runs, published values."""

import math

from harness import made_runs
import pytest
import toys

from experiments.harness import cells, tables


def _table(*measures):
  grid = {
    ('Flipout NWA train_size', 'iid'): made_runs.cell('a'),
    ('Flipout WS train_size', 'iid'): made_runs.cell('b'),
  }
  return tables.Table(
    made_runs.PAPER, 'table2', 'a title', grid,
    measures or (cells.ACCURACY, cells.NLL),
    {'smoke': range(3)}, {},
  )  # fmt: skip


def _task(table, row, seed, root):
  return cells.Task(table.grid[row, 'iid'], 'smoke', seed, root)


def test_an_entry_has_mean_standard_error_and_published_value(tmp_path):
  table = _table(cells.ACCURACY)
  for seed, accuracy in enumerate((0.5, 0.6, 0.7)):
    made_runs.finish(
      _task(table, 'Flipout NWA train_size', seed, tmp_path), accuracy
    )
  entry, other = table.entries('smoke', tmp_path)
  assert entry.mean == pytest.approx(60.0)
  # The standard deviation over three seeds is 10.
  assert entry.standard_error == pytest.approx(10 / math.sqrt(3))
  assert entry.published == 81.67
  assert entry.text == '60.00 ± 5.77'
  assert other.text == '-' and other.published_text == '87.41'


@pytest.mark.parametrize(
  ('why', 'diverged'),
  [
    ('TooFewClientsError: all NaN', 2),
    # An error of the machine is no divergence.
    ('TooFewClientsError: 0: it raised ResourceExhaustedError', 1),
  ],
)
def test_a_diverged_run_is_marked_and_excluded_from_the_mean(
  tmp_path, why, diverged
):
  table = _table()
  row = 'Flipout WS train_size'
  made_runs.finish(_task(table, row, 0, tmp_path), 0.5, nll=math.nan)
  made_runs.finish(_task(table, row, 1, tmp_path), 0.7, nll=2.0)
  failed = _task(table, row, 2, tmp_path)
  failed.failure_path.write_text(f'{why}\n')
  entries = {(e.row, e.label): e for e in table.entries('smoke', tmp_path)}
  assert entries[row, 'NLL (nats)'].text == '2.000†'
  assert entries[row, 'NLL (nats)'].diverged == diverged
  assert entries[row, 'Accuracy (%)'].reason == why


def test_a_score_that_runs_do_not_record_is_not_a_divergence(tmp_path):
  table = _table(cells.ACCURACY, cells.Measure('Other', cells.final('other')))
  for row, _ in table.grid:
    for seed in range(3):
      made_runs.finish(_task(table, row, seed, tmp_path), 0.5)
  entries = table.entries('smoke', tmp_path)
  assert {e.text for e in entries if e.label == 'Other'} == {'-'}
  assert 'over 3 of 3 seeds' in table.write('smoke', tmp_path)[0]


def test_a_table_is_written_as_csv_and_markdown(tmp_path):
  table = _table(cells.ACCURACY)
  made_runs.finish(_task(table, 'Flipout NWA train_size', 0, tmp_path), 0.5)
  text = table.write('smoke', tmp_path)[0]
  stem = tmp_path / 'smoke' / 'posterior_pooling' / 'table2'
  assert '50.00 [81.67]' in text and cells.SMOKE in text
  assert stem.with_suffix('.md').read_text('utf-8') == text
  rows = toys.table(stem.with_suffix('.csv'))
  assert float(rows[0]['mean']) == 50.0 and rows[1]['mean'] == ''


@pytest.mark.parametrize(
  ('flags', 'failure'),
  # A run extends one with fewer rounds.
  [({'batch_size': 7}, '--batch_size=7'), ({'num_rounds': 1}, '')],
)
def test_runs_with_other_flags_are_not_read(tmp_path, flags, failure):
  table = _table(cells.ACCURACY)
  other = made_runs.cell('b', **flags)
  made_runs.finish(cells.Task(other, 'smoke', 0, tmp_path), 0.5)
  task = _task(table, 'Flipout WS train_size', 0, tmp_path)
  assert not task.is_done and failure in (task.failure or '')
  text, _ = table.write('smoke', tmp_path)
  assert '50.00' not in text and failure in text
