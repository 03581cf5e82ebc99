"""Tests of the binary experiments.sweep."""

import binaries
import pytest
import toys

from bfl_tf.config import config

_SMALL = [
  '--model=logistic', '--num_clients=2', '--num_rounds=2', '--jobs=1',
  '--num_mc_samples=2', '--final_num_mc_samples=3', '--validation_split=0.2',
  '--grid=pooling=nwa|lp', '--scores=accuracy,nll', '--figures=risk_coverage',
]  # fmt: skip


@pytest.mark.process
def test_a_sweep_rejects_invalid_flags_and_reuses_finished_runs(tmp_path):
  folder = tmp_path / 'study'
  small = [*_SMALL, f'--output_dir={folder}']
  more = ['--seeds=0,1', '--baseline=pooling=nwa']
  tuned = [
    '--tune=client_learning_rate=0.001|0.003|0.01', '--extend_rates',
    '--ensemble=2',
  ]  # fmt: skip
  bad = (
    '--choose_by=validation_nll', '--tune=model=mlp|logistic',
    '--grid=pooling=ws', '--grid=pools=nwa', '--seeds=0,0',
    '--figures=pie', '--baseline=pooling=ws', '--names=pooling=ws:WS',
    '--grid=weighting=size,equal',
  )  # fmt: skip
  *played, busy = binaries.drive(
    'experiments.sweep',
    [
      *([*_SMALL, f'--output_dir={tmp_path}/new', word] for word in bad),
      small,
      [*small, *more],
      [*small, *more, *tuned, f'--output_dir={tmp_path}/tuned'],
      # The directory contains another run.
      [*small, '--batch_size=64'],
    ],
  )
  for word, (code, out, error) in zip(bad, played[:-3], strict=True):
    assert (code, out, error.count('\n')) == (2, '', 1), error
    assert word.partition('=')[0] in error or 'pools' in error
  assert not (tmp_path / 'new').exists()
  (code, out, error), (again, more_out, _), (last, tuned_out, _) = played[-3:]
  assert (code, again, last) == (0, 0, 0), error
  assert '2 runs, 0 of them finished' in out
  assert '4 runs, 2 of them finished' in more_out
  assert {path.name for path in folder.iterdir()} == {
    'pooling=nwa', 'pooling=lp', 'compared.csv', 'compared.md', 'compared.tex',
    'runs.csv', '.runs.csv.lock', 'risk_coverage.png', 'risk_coverage.pdf',
  }  # fmt: skip
  rows = toys.table(folder / 'compared.csv')
  assert [row['score'] for row in rows[::2]] == ['accuracy', 'nll']
  assert rows[1]['p_value'] and not rows[0]['p_value']
  # Each setting has the values of its best trial, and trains on all examples.
  assert tuned_out.count('chosen for pooling=') == 2
  trials = toys.table(tmp_path / 'tuned/trials.csv')
  # The highest rate of three was the best one.
  assert len(trials) == 12
  for rule in ('nwa', 'lp'):
    own = [row for row in trials if row['pooling'] == rule]
    best = min(own, key=lambda row: float(row['validation_nll']))
    chosen = [row for row in own if row['chosen_by'] == 'validation_nll']
    assert chosen == [best]
    folder = tmp_path / f'tuned/pooling={rule}' / best['values']
    made = config.Config.from_flagfile(folder / 'seed1/flags.txt')
    rate = f'client_learning_rate={made.client_learning_rate}'
    assert (made.validation_split, rate) == (0, best['values'])
  assert busy[0] == 2 and 'batch_size' in busy[2]
