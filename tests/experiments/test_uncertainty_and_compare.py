"""Tests of the binaries uncertainty and compare on finished runs."""

import json

import binaries
import numpy as np
import pytest
import site_data
import toys

from bfl_tf.config.config import Config
from bfl_tf.runs import comparison, groups, Run


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Runs of two rules, one of them with two seeds."""
  root = tmp_path_factory.mktemp('runs')
  built: dict = {}
  for rule, seed in (('nwa', 0), ('nwa', 1), ('lp', 0)):
    config = Config(
      dataset='digits', model='logistic',
      num_workers=1, num_clients=2, num_rounds=2,
      client_learning_rate=0.01, pooling=rule, seed=seed,
      calibration_fraction=0.2, num_mc_samples=2, final_num_mc_samples=3,
    )  # fmt: skip
    Run(
      config, root / f'{rule}_{seed}', False, built, draw_plots=False
    ).execute()
  return root


@pytest.fixture(scope='module')
def evaluated(folder):
  run = f'--run={folder}/nwa_0'
  np.savez(folder / 'other.npz', x_train=np.full([40, 9, 9], 200, np.uint8))
  good = [run, f'--near={folder}/other.npz', '--far=digits']
  return binaries.drive(
    'experiments.uncertainty',
    [
      [*good, '--num_examples=50', '--num_mc_samples=2'],
    ],
  )


@pytest.mark.process
def test_uncertainty_writes_tables_scores_and_figures(folder, evaluated):
  code, out, error = evaluated[0]
  assert code == 0, error
  assert 'fitted on the calibration examples' in out
  written = folder / 'nwa_0' / 'uncertainty'
  assert {path.name for path in written.iterdir()} == {
    'detection.csv', 'selection.csv', 'calibration.csv', 'corruptions.csv',
    'scores.json', 'detection.png', 'corruptions.png',
  }  # fmt: skip
  rows = toys.table(written / 'detection.csv')
  assert [row['distance'] for row in rows] == ['near'] * 3 + ['far'] * 3
  assert {row['num_in'] for row in rows} == {'50'}
  assert len(toys.table(written / 'corruptions.csv')) == 26


@pytest.fixture(scope='module')
def compared(folder, evaluated):
  runs = [str(folder / name) for name in ('nwa_0', 'nwa_1', 'lp_0')]
  return binaries.drive(
    'experiments.compare',
    [
      [*runs, f'--output={folder}/compared', '--figures=reliability'],
      [*runs, '--scores=aurc_normalized_entropy,accuracy'],
    ],
  )


@pytest.mark.process
def test_compare_prints_the_mean_and_standard_error_over_seeds(
  folder, compared
):
  code, out, error = compared[0]
  assert code == 0, error
  rows = {row[1].strip(): row for row in (x.split('|') for x in out.split('\n'))
          if len(row) > 3}  # fmt: skip
  assert rows['lp'][2].strip() == '1'
  accuracy = [
    json.loads((folder / run / 'summary.json').read_text('utf-8'))['final'][
      'accuracy'
    ]
    for run in ('nwa_0', 'nwa_1')
  ]
  error = abs(accuracy[0] - accuracy[1]) / 2
  wanted = f'{np.mean(accuracy):.4f} ± {error:.4f}'
  assert wanted in [cell.strip() for cell in rows['nwa']]
  assert {path.name for path in (folder / 'compared').iterdir()} == {
    'compared.csv', 'compared.md', 'compared.tex', 'reliability.pdf',
    'reliability.png',
  }  # fmt: skip


@pytest.mark.process
def test_compare_reads_the_scores_of_the_uncertainty_evaluation(compared):
  code, out, _ = compared[1]
  assert code == 0
  (nwa,) = [line for line in out.splitlines() if '| nwa ' in line]
  (lp,) = [line for line in out.splitlines() if '| lp ' in line]
  # One of two seeds of `nwa` has the score; `lp` does not have it.
  assert '±' not in nwa.split('|')[3]
  assert '(1 of 2)' in nwa.split('|')[3]
  assert lp.split('|')[3].strip() == '-'


def test_runs_on_different_files_are_not_grouped_as_seeds(tmp_path):
  for seed in range(2):
    site_data.write(tmp_path / 'sites.csv', site_data.rows(seed=seed))
    config = site_data.config(tmp_path / 'sites.csv', seed=seed, num_rounds=1)
    run = Run(config, tmp_path / str(seed), False, draw_plots=False)
    run.execute()
  found = comparison.named(groups.grouped([tmp_path / '0', tmp_path / '1']))
  assert len(found) == 2
  assert all(name.startswith('--dataset=') for name in found)
