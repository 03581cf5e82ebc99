"""Tests of the binary experiments.run, with two rounds on digits."""

import json

import binaries
import numpy as np
import pytest

from bfl_tf.config.config import FIELDS
from experiments import outcomes

SMALL = (
  '--num_rounds=2', '--mlp.hidden_units=8', '--num_mc_samples=2',
  '--num_clients=4', '--partition=dirichlet',
)  # fmt: skip


@pytest.mark.process
def test_a_run_writes_consistent_files_and_prints_its_accuracy(tmp_path):
  path = tmp_path / 'new' / 'digits'
  one = [*SMALL, f'--output_dir={path}']
  other = [*SMALL, '--deterministic', f'--output_dir={path}_other']
  (code, out, error), deterministic, (_, shown, _) = binaries.drive(
    'experiments.run', [one, other, ['--help']]
  )
  assert not [name for name in FIELDS if f'\n  --{name}=' not in shown]
  assert code == 0, error
  files = {p.name for p in path.iterdir() if p.is_file()}
  assert files == {
    '.lock', 'checkpoint.npz', 'flags.txt', 'metrics.csv', 'partition.csv',
    'predictions.npz', 'summary.json', 'task.json',
  }  # fmt: skip
  summary = json.loads((path / 'summary.json').read_text('utf-8'))
  with np.load(path / 'predictions.npz') as arrays:
    accuracy = np.mean(arrays['probs'].argmax(1) == arrays['labels'])
    assert arrays['epistemic_uncertainty'].shape == arrays['labels'].shape
  assert accuracy == pytest.approx(summary['final']['accuracy'])
  counts = np.loadtxt(path / 'partition.csv', delimiter=',', skiprows=1)
  assert counts.shape == (4, 11)
  assert len([*(path / 'plots').glob('*.png')]) >= 7
  assert f'{accuracy:.4f}' in out
  # Deterministic kernels also work if layers draw while they are built.
  assert deterministic[0] == 0, deterministic
  # Several clients per device give the same results.
  code, _, error = binaries.run(
    'experiments.run', *SMALL, f'--output_dir={path}_shared',
    '--num_workers=1', '--clients_per_device=3',
  )  # fmt: skip
  assert code == 0, error
  assert outcomes.of(path.with_name('digits_shared')) == outcomes.of(path)
