"""Tests of the binary experiments.sweep."""

import csv

import binaries
import pytest

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
  more = ['--seeds=0,1', '--baseline=pooling=nwa', '--choose_by=validation_nll']
  bad = (
    '--choose_by=nll', '--grid=pooling=ws', '--grid=pools=nwa', '--seeds=0,0',
    '--figures=pie', '--baseline=pooling=ws', '--names=pooling=ws:WS',
    '--grid=weighting=size,equal',
  )  # fmt: skip
  *played, busy = binaries.drive(
    'experiments.sweep',
    [
      *([*_SMALL, f'--output_dir={tmp_path}/new', word] for word in bad),
      small,
      [*small, *more],
      # The directory contains another run.
      [*small, '--batch_size=64'],
    ],
  )
  for word, (code, out, error) in zip(bad, played[:-2], strict=True):
    assert (code, out, error.count('\n')) == (2, '', 1), error
    assert word.partition('=')[0] in error or 'pools' in error
  assert not (tmp_path / 'new').exists()
  (code, out, error), (again, more_out, _) = played[-2:]
  assert (code, again) == (0, 0), error
  assert '2 runs, 0 of them finished' in out
  assert '4 runs, 2 of them finished' in more_out
  assert {path.name for path in folder.iterdir()} == {
    'pooling=nwa', 'pooling=lp', 'compared.csv', 'compared.md', 'compared.tex',
    'risk_coverage.png', 'risk_coverage.pdf', 'best.flags',
  }  # fmt: skip
  with (folder / 'compared.csv').open(newline='', encoding='utf-8') as file:
    rows = list(csv.DictReader(file))
  scores = ('accuracy', 'nll', 'validation_nll')
  assert [row['score'] for row in rows[::2]] == [*scores]
  assert rows[1]['p_value'] and not rows[0]['p_value']
  best = config.Config.from_flagfile(folder / 'best.flags')
  assert best.pooling in ('nwa', 'lp') and best.validation_split == 0.2
  assert busy[0] == 2 and 'batch_size' in busy[2]
