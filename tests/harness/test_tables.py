"""Tests of tables: scores, seeds, diverged runs, published values."""

import math

from harness import made_runs
import pytest
import toys

from experiments.harness import cells, tables

NWA, WS = made_runs.cell('a'), made_runs.cell('b')


def _table(*measures):
  grid = {
    ('Flipout NWA train_size', 'iid'): NWA,
    ('Flipout WS train_size', 'iid'): WS,
  }
  return tables.Table(
    made_runs.PAPER, 'table2', 'a title', grid, measures, {'smoke': range(3)}
  )


def test_an_entry_has_mean_standard_error_and_published_value(tmp_path):
  table = _table(cells.ACCURACY)
  for task, accuracy in zip(
    NWA.tasks('smoke', range(3), tmp_path), (0.5, 0.6, 0.7)
  ):
    made_runs.finish(task, accuracy)
  entry, other = table.entries('smoke', tmp_path)
  assert entry.mean == pytest.approx(60.0)
  # The standard deviation over three seeds is 10.
  assert entry.standard_error == pytest.approx(10 / math.sqrt(3))
  assert entry.published == 81.67
  assert entry.text == '60.00 ± 5.77'
  assert other.text == '-' and other.published_text == '87.41'
  text, _ = table.write('smoke', tmp_path)
  stem = tmp_path / 'smoke' / 'posterior_pooling' / 'table2'
  assert '60.00 ± 5.77 [81.67]' in text and cells.SMOKE in text
  assert stem.with_suffix('.md').read_text('utf-8') == text
  rows = toys.table(stem.with_suffix('.csv'))
  assert float(rows[0]['mean']) == entry.mean and rows[1]['mean'] == ''


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
  first, second, failed = WS.tasks('smoke', range(3), tmp_path)
  made_runs.finish(first, 0.5, nll=math.nan)
  made_runs.finish(second, 0.7, nll=2.0)
  failed.failure_path.write_text(f'{why}\n')
  _, entry = _table(cells.NLL).entries('smoke', tmp_path)
  assert (entry.text, entry.diverged) == ('2.000†', diverged)
  assert entry.reason == why


def test_a_score_that_runs_do_not_record_is_not_a_divergence(tmp_path):
  table = _table(cells.ACCURACY, cells.Measure('Other', cells.final('other')))
  for cell in table.cells:
    for task in cell.tasks('smoke', range(3), tmp_path):
      made_runs.finish(task, 0.5)
  entries = table.entries('smoke', tmp_path)
  assert {e.text for e in entries if e.label == 'Other'} == {'-'}
  assert 'over 3 of 3 seeds' in table.write('smoke', tmp_path)[0]


@pytest.mark.parametrize(
  ('flags', 'failure'),
  # A run extends one with fewer rounds.
  [({'batch_size': 7}, '--batch_size=7'), ({'num_rounds': 1}, '')],
)
def test_runs_with_other_flags_are_not_read(tmp_path, flags, failure):
  other = made_runs.cell('b', **flags)
  made_runs.finish(cells.Task(other, 'smoke', 0, tmp_path), 0.5)
  task = cells.Task(WS, 'smoke', 0, tmp_path)
  assert not task.is_done and failure in (task.failure or '')
  text, _ = _table(cells.ACCURACY).write('smoke', tmp_path)
  assert '50.00' not in text and failure in text
