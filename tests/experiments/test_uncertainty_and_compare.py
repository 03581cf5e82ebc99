"""Tests of the binaries uncertainty and compare on finished runs."""

import binaries
import numpy as np
import pytest
import toys

from bfl_tf.config.config import Config
from bfl_tf.runs import Run


@pytest.mark.process
def test_compare_has_the_scores_that_uncertainty_writes(tmp_path):
  built: dict = {}
  names = [('nwa', 0), ('nwa', 1), ('lp', 0)]
  for rule, seed in names:
    config = Config(
      dataset='digits', model='logistic',
      num_workers=1, num_clients=2, num_rounds=2,
      client_learning_rate=0.01, pooling=rule, seed=seed,
      calibration_fraction=0.2, num_mc_samples=2, final_num_mc_samples=3,
    )  # fmt: skip
    place = tmp_path / f'{rule}_{seed}'
    Run(config, place, False, built, draw_plots=False).execute()
  np.savez(tmp_path / 'other.npz', x_train=np.full([40, 9, 9], 200, np.uint8))
  flags = [
    f'--run={tmp_path}/nwa_0', f'--near={tmp_path}/other.npz', '--far=digits',
    '--num_examples=50', '--num_mc_samples=2',
  ]  # fmt: skip
  ((code, _, error),) = binaries.drive('experiments.uncertainty', [flags])
  assert code == 0, error
  written = tmp_path / 'nwa_0' / 'uncertainty'
  assert {path.name for path in written.iterdir()} == {
    'detection.csv', 'selection.csv', 'calibration.csv', 'corruptions.csv',
    'scores.json', 'detection.png', 'corruptions.png',
  }  # fmt: skip
  rows = toys.table(written / 'detection.csv')
  assert [row['distance'] for row in rows] == ['near'] * 3 + ['far'] * 3
  assert {row['num_in'] for row in rows} == {'50'}

  flags = [
    *(f'{tmp_path}/{rule}_{seed}' for rule, seed in names),
    '--scores=aurc_normalized_entropy,accuracy', '--figures=reliability',
    f'--output={tmp_path}/compared',
  ]  # fmt: skip
  ((code, _, error),) = binaries.drive('experiments.compare', [flags])
  assert code == 0, error
  assert {path.name for path in (tmp_path / 'compared').iterdir()} == {
    'compared.csv', 'compared.md', 'compared.tex', 'reliability.pdf',
    'reliability.png',
  }  # fmt: skip
  # Only one of three runs has an uncertainty evaluation.
  assert [
    (row['pooling'], row['n'])
    for row in toys.table(tmp_path / 'compared' / 'compared.csv')
    if row['score'] == 'aurc_normalized_entropy'
  ] == [('nwa', '1'), ('lp', '0')]
