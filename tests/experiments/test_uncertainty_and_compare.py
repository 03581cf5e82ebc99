"""Tests of the binaries uncertainty and compare on finished runs."""

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
def written(folder):
  """The folder with the uncertainty evaluation of the run nwa_0."""
  np.savez(folder / 'other.npz', x_train=np.full([40, 9, 9], 200, np.uint8))
  flags = [
    f'--run={folder}/nwa_0', f'--near={folder}/other.npz', '--far=digits',
    '--num_examples=50', '--num_mc_samples=2',
  ]  # fmt: skip
  ((code, _, error),) = binaries.drive('experiments.uncertainty', [flags])
  assert code == 0, error
  return folder / 'nwa_0' / 'uncertainty'


@pytest.mark.process
def test_uncertainty_writes_tables_scores_and_figures(written):
  assert {path.name for path in written.iterdir()} == {
    'detection.csv', 'selection.csv', 'calibration.csv', 'corruptions.csv',
    'scores.json', 'detection.png', 'corruptions.png',
  }  # fmt: skip
  rows = toys.table(written / 'detection.csv')
  assert [row['distance'] for row in rows] == ['near'] * 3 + ['far'] * 3
  assert {row['num_in'] for row in rows} == {'50'}


@pytest.mark.process
@pytest.mark.usefixtures('written')
def test_compare_has_all_recorded_scores(folder):
  runs = [str(folder / name) for name in ('nwa_0', 'nwa_1', 'lp_0')]
  flags = [
    '--scores=aurc_normalized_entropy,accuracy', f'--output={folder}/compared',
    '--figures=reliability',
  ]  # fmt: skip
  ((code, _, error),) = binaries.drive('experiments.compare', [[*runs, *flags]])
  assert code == 0, error
  assert {path.name for path in (folder / 'compared').iterdir()} == {
    'compared.csv', 'compared.md', 'compared.tex', 'reliability.pdf',
    'reliability.png',
  }  # fmt: skip
  rows = {
    (row['pooling'], row['score']): row
    for row in toys.table(folder / 'compared' / 'compared.csv')
  }
  # Only one of three runs has an uncertainty evaluation.
  counts = [
    rows[name, 'aurc_normalized_entropy']['n'] for name in ('nwa', 'lp')
  ]
  assert counts == ['1', '0']


def test_runs_on_different_files_are_not_grouped_as_seeds(tmp_path):
  for seed in range(2):
    site_data.write(tmp_path / 'sites.csv', site_data.rows(seed=seed))
    config = site_data.config(tmp_path / 'sites.csv', seed=seed, num_rounds=1)
    run = Run(config, tmp_path / str(seed), False, draw_plots=False)
    run.execute()
  found = comparison.named(groups.grouped([tmp_path / '0', tmp_path / '1']))
  assert len(found) == 2
  assert all(name.startswith('--dataset=') for name in found)
