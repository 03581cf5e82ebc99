"""Tests of cells, their configs and measures, and settings of papers."""

import pathlib
import pickle

from harness import made_runs
import numpy as np
import pytest
import toys

from bfl_tf import data
from bfl_tf.data import builtin, partitions
from bfl_tf.data import names as names_lib
from bfl_tf.federation.plan import Plan
from experiments import papers
from experiments.harness import cells, tables
from experiments.papers import board, priors, validation_digits
from experiments.papers.board import data as data_lib

ROOT = pathlib.Path(__file__).parents[2]
ALL = (*papers.ARTIFACTS.values(), *papers.CLAIMS.values())
CELLS = [cell for artifact in ALL for cell in artifact.cells]


def test_a_cell_overrides_the_settings_of_its_papers_scale():
  paper = cells.Paper('posterior_pooling', {'laptop': {'num_rounds': 3}})
  cell = cells.Cell(
    paper, 'a', {'num_rounds': 7, 'pooling': 'ws', 'step.minor_examples': 5},
    {'laptop': {'flipout.prior_scale': 2.0}},
  )  # fmt: skip
  config = cell.config('laptop', seed=4)
  assert (config.num_rounds, config.pooling) == (7, 'ws')
  # Settings of other methods are ignored.
  assert config.get('flipout.prior_scale') == 2.0
  assert config.get('step.minor_examples') is None
  assert (config.seed, config.model) == (4, 'resnet20')


def test_measures_of_a_metrics_column(tmp_path):
  task = cells.Task(made_runs.cell('a'), 'smoke', 0, tmp_path)
  made_runs.finish(task, 0.8, curve=(0.1, '', 0.4, 0.8))
  assert cells.SPEED(task) == pytest.approx(60)
  assert cells.column('accuracy', min)(task.directory) == 0.1
  nothing = cells.Measure('nothing', cells.column('nothing', max))
  assert nothing.get(task) is None and np.isnan(nothing(task))


def test_every_published_value_has_a_cell_in_its_table():
  known = {artifact.paper.name for artifact in papers.ARTIFACTS.values()}
  rows = toys.table(ROOT / 'configs' / 'published.csv')
  names = {(row['paper'], row['table']) for row in rows}
  # Values that are published in a figure, so that no table has them.
  for paper, name in names - {('fedbe', 'figure1')}:
    if paper in known:
      table = papers.ARTIFACTS[f'{paper}/{name}']
      ours = {
        (column, row, measure.published)
        for row, column in table.grid
        for measure in table.measures
      }
      assert ours >= tables.published(paper, name).keys()


@pytest.mark.parametrize('scale', cells.SCALES)
def test_a_directory_has_one_config_also_in_other_processes(scale, tmp_path):
  configs = {}
  for cell in CELLS:
    task = cells.Task(cell, scale, 0, tmp_path)
    config, directory = task.config, task.directory
    assert configs.setdefault(directory, config) == config
    assert pickle.loads(pickle.dumps(task)).directory == directory


def test_smoke_scale_uses_only_built_in_data():
  for cell in CELLS:
    config = cell.config('smoke', seed=0)
    made = names_lib.kind(config.dataset) == 'function'
    assert made or config.dataset in builtin.BUILTIN
    assert config.server_dataset in ('', *builtin.BUILTIN)


def _rows(*splits):
  return sorted(row.tobytes() for split in splits for row in split.x)


def test_the_prior_is_chosen_without_the_test_examples():
  whole, ours = data.load('digits'), validation_digits.digits()
  assert _rows(ours.train, ours.test) == _rows(whole.train)
  assert 0.19 < len(ours.test.y) / len(whole.train.y) < 0.21


def test_the_chosen_temperatures_have_the_lowest_nll():
  nll = {
    (row['row'], row['column']): float(row['mean'])
    for row in toys.table(ROOT / 'results/priors/laptop/choosing.csv')
    if row['label'] == 'NLL (nats)'
  }
  for rule, pooling in cells.RULES.items():
    best = min(priors.TEMPERATURES, key=lambda name: nll[rule, name])
    chosen = {'flipout.temperature': priors.CHOSEN[pooling]}
    assert priors.TEMPERATURES[best] == chosen


def test_the_board_has_the_splits_and_the_network_of_the_public_code():
  labels = np.repeat(np.arange(10), 5000)
  for split, seed, smallest in (
    (data_lib.flower, 7, 1785),
    (data_lib.flower_2023, 7, 2920),
    (data_lib.niid_bench, 1, 1980),
  ):
    parts = split(labels, num_clients=10, seed=seed)
    assert abs(min(part.size for part in parts) - smallest) <= 5
    table = partitions.counts(labels, parts, 10)
    # Counts are rounded by class.
    full = np.cumsum(table, axis=1)[:, :-1] > 5001
    assert full.any() and not table[:, 1:][full].any()
  config = board.POINTS['FedAvg', 'IID'].config('paper', 0)
  lenet5 = Plan.of(config).network((32, 32, 3), 10)()
  assert lenet5.count_params() == 62_006
