"""Tests of figures: panels, missing runs, and models of the papers."""

from harness import made_runs
import numpy as np
import pytest

import bfl_tf
from experiments.harness import cells, figures
from experiments.papers.fedbe import features, grids


def finish(cell, root, *accuracies):
  for task, accuracy in zip(cell.tasks('smoke', range(2), root), accuracies):
    made_runs.finish(task, accuracy)


def test_a_sweep_figure_shows_the_seeds_that_did_not_diverge(tmp_path):
  one, five, other = map(made_runs.cell, ('be1', 'be5', 'avg1'))
  figure = figures.sweep(
    made_runs.PAPER, 'figure2', 'samples',
    {'step': {'FedBE': {1: one, 5: five}}, 'other': {'FedAvg': {1: other}}},
    {'step': 'Samples', 'other': 'Epochs'}, {'smoke': range(2)},
  )  # fmt: skip
  finish(one, tmp_path, 0.5, 0.7)
  finish(five, tmp_path, np.nan)
  drawn, missing = figure.drawn('step', 'smoke', tmp_path)
  (axes,) = drawn.axes
  (line,), (band,) = axes.lines, axes.collections
  np.testing.assert_allclose(line.get_xydata(), [[1, 60]])
  assert band.get_datalim(axes.transData).intervaly.tolist() == [50, 70]
  assert missing == ['FedBE at 5 seed 1']
  finish(five, tmp_path, np.nan, 0.9)
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
