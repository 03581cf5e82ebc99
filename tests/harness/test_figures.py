"""Tests of figures: panels, missing runs, and models of the papers."""

from harness import made_runs
import numpy as np
import pytest

import bfl_tf
from bfl_tf import federation
from experiments.harness import cells, figures
from experiments.papers.fedbe import features, grids, simplex

SEEDS = {'smoke': range(2), 'laptop': range(2)}


def sweep():
  lines = {'FedBE': {x: made_runs.cell(f'be{x}') for x in (1, 5)}}
  return figures.sweep(
    made_runs.PAPER, 'figure2', 'samples',
    {'step': lines, 'other': {'FedAvg': {1: made_runs.cell('avg1')}}},
    {'step': 'Samples', 'other': 'Epochs'}, SEEDS,
  )  # fmt: skip


def finish(cell, root, *accuracies):
  for seed, accuracy in enumerate(accuracies):
    task = cells.Task(cell, 'smoke', seed, root)
    made_runs.finish(task, accuracy, curve=(0.1, accuracy))


def test_a_sweep_figure_shows_the_seeds_that_did_not_diverge(tmp_path):
  figure = sweep()
  one, five = figure.panels['step'].values()
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
  assert cells.column('accuracy', lambda v: v[-1])(tasks[0].directory) == 0.2
  last = cells.Measure('last', cells.column('accuracy', lambda v: v[-1]))
  assert last(tasks[1]) == 0.3


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  path = tmp_path_factory.mktemp('fedbe') / 'run'
  config = grids.MAIN['FedAvg', 'step ConvNet'].config('smoke', 0)
  bfl_tf.runs.Run(config, path, False, draw_plots=False).execute()
  return path


def test_classes_of_other_images_are_the_predictions_of_the_run(run):
  vectors, classes = features.of_cifar100(run)
  point = bfl_tf.load(run).weights.point
  logits = vectors @ point[-90:-10].reshape(8, 10) + point[-10:]
  np.testing.assert_array_equal(classes, logits.argmax(-1))
  # A run on digits uses its training images in place of CIFAR-100.
  assert len(vectors) > len(features.of_test_set(run)[0])


def test_models_on_the_simplex_are_convex_combinations():
  config = grids.SWISS_ROLL.config('smoke', 0)
  experiment = federation.Experiment.build(config)
  coefficients, accuracy = simplex.models(experiment, num_models=5)
  assert coefficients.shape == (5, 3) and accuracy.shape == (5,)
  np.testing.assert_allclose(coefficients.sum(-1), 1, rtol=1e-6)
  assert (coefficients >= 0).all()
