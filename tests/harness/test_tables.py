"""Tests of tables and figures: scores, seeds, missing and diverged runs."""

from harness import made_runs
import numpy as np
import pytest
import toys

import bfl_tf
from experiments.harness import cells, figures, tables
from experiments.papers.fedbe import features, grids

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
  made_runs.finish_seeds(NWA, tmp_path, 0.5, 0.6, 0.7)
  entry, other = table.entries('smoke', tmp_path)
  assert entry.mean == pytest.approx(60.0)
  # The standard deviation over three seeds is 10.
  assert entry.standard_error == pytest.approx(10 / 3**0.5)
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
  made_runs.finish(first, 0.5, nll=np.nan)
  made_runs.finish(second, 0.7, nll=2.0)
  failed.failure_path.write_text(f'{why}\n')
  _, entry = _table(cells.NLL).entries('smoke', tmp_path)
  assert (entry.text, entry.diverged) == ('2.000†', diverged)
  assert entry.reason == why


def test_a_score_that_runs_do_not_record_is_not_a_divergence(tmp_path):
  table = _table(cells.ACCURACY, cells.Measure('Other', cells.final('other')))
  for cell in table.cells:
    made_runs.finish_seeds(cell, tmp_path, 0.5, 0.5, 0.5)
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


def test_a_sweep_figure_shows_the_seeds_that_did_not_diverge(tmp_path):
  one, five, other = map(made_runs.cell, ('be1', 'be5', 'avg1'))
  figure = figures.sweep(
    made_runs.PAPER, 'figure2', 'samples',
    {'step': {'FedBE': {1: one, 5: five}}, 'other': {'FedAvg': {1: other}}},
    {'step': 'Samples', 'other': 'Epochs'}, {'smoke': range(2)},
  )  # fmt: skip
  made_runs.finish_seeds(one, tmp_path, 0.5, 0.7)
  made_runs.finish_seeds(five, tmp_path, np.nan)
  drawn, missing = figure.drawn('step', 'smoke', tmp_path)
  (axes,) = drawn.axes
  (line,), (band,) = axes.lines, axes.collections
  np.testing.assert_allclose(line.get_xydata(), [[1, 60]])
  assert band.get_datalim(axes.transData).intervaly.tolist() == [50, 70]
  assert missing == ['FedBE at 5 seed 1']
  made_runs.finish_seeds(five, tmp_path, np.nan, 0.9)
  drawn, missing = figure.drawn('step', 'smoke', tmp_path)
  (line,) = drawn.axes[0].lines
  np.testing.assert_allclose(line.get_xydata(), [[1, 60], [5, 90]])
  assert missing == []
  assert figure.drawn('other', 'smoke', tmp_path) == (None, ['FedAvg at 1'])


def test_a_reading_shares_the_run_of_its_cell(tmp_path):
  cell = made_runs.cell('a')
  reading = cell.reading('C')
  tasks = [cells.Task(c, 'smoke', 0, tmp_path) for c in (cell, reading)]
  assert tasks[0].directory == tasks[1].directory
  made_runs.finish(tasks[0], 0.5, accuracy_C=0.25)
  assert all(task.is_done for task in tasks)
  assert [cells.ACCURACY(task) for task in tasks] == pytest.approx([50, 25])
  absent = cells.Task(cell.reading('S'), 'smoke', 0, tmp_path)
  assert np.isnan(cells.ACCURACY(absent))
  (tasks[1].directory / 'metrics.csv').write_text(
    'round,accuracy,accuracy_C\n0,0.1,\n1,0.2,0.3\n'
  )
  highest = cells.Measure('highest', cells.column('accuracy', max))
  assert [highest(task) for task in tasks] == [0.2, 0.3]


def test_classes_of_other_images_are_the_predictions_of_the_run(tmp_path):
  run = tmp_path / 'run'
  config = grids.MAIN['FedAvg', 'step ConvNet'].config('smoke', 0)
  bfl_tf.runs.Run(config, run, False, draw_plots=False).execute()
  vectors, classes = features.of_cifar100(run)
  point = bfl_tf.load(run).weights.point
  logits = vectors @ point[-90:-10].reshape(8, 10) + point[-10:]
  np.testing.assert_array_equal(classes, logits.argmax(-1))
  # A run on digits uses its training images in place of CIFAR-100.
  assert len(vectors) > len(features.of_test_set(run)[0])
