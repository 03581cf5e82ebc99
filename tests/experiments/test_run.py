"""The binary: two rounds on digits, and once more on what they left."""

import csv
import json

import binaries
import numpy as np
import pytest

from bfl_tf import runs as runs_lib

pytestmark = pytest.mark.process


@pytest.fixture(scope='module')
def said(tmp_path_factory):
  """A run, the same with another flag, and one that is deterministic."""
  path = tmp_path_factory.mktemp('runs') / 'new' / 'digits'
  small = [
    '--num_rounds=2', '--mlp.hidden_units=8', '--num_mc_samples=2',
    '--num_clients=4', '--partition=dirichlet', f'--output_dir={path}',
  ]  # fmt: skip
  other = [*small[:-1], '--deterministic', f'--output_dir={path}_other']
  return path, binaries.drive(
    'experiments.run', [small, [*small, '--dirichlet.alpha=0.75'], other]
  )


@pytest.fixture(scope='module')
def finished(said):
  path, ((code, out, error), *_) = said
  assert code == 0, error
  return path, out


def test_two_rounds_on_digits(finished):
  path, out = finished
  files = {p.name for p in path.iterdir() if p.is_file()}
  assert files == {
    '.lock', 'checkpoint.npz', 'flags.txt', 'metrics.csv', 'partition.csv',
    'predictions.npz', 'summary.json', 'task.json',
  }  # fmt: skip
  with open(path / 'metrics.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  assert [row['round'] for row in rows] == ['0', '1', '2']
  summary = json.loads((path / 'summary.json').read_text())
  assert summary['rounds'] == 2
  for name, value in summary['final'].items():
    assert float(rows[-1][name]) == value
  with np.load(path / 'predictions.npz') as arrays:
    accuracy = np.mean(arrays['probs'].argmax(1) == arrays['labels'])
    assert arrays['epistemic_uncertainty'].shape == arrays['labels'].shape
  assert accuracy == pytest.approx(summary['final']['accuracy'])
  counts = np.loadtxt(path / 'partition.csv', delimiter=',', skiprows=1)
  assert counts.shape == (4, 11)
  assert len([*(path / 'plots').glob('*.png')]) >= 7
  assert f'{accuracy:.4f}' in out


def test_a_finished_run_is_told_and_a_changed_one_refused(finished, said):
  path, _ = finished
  config = runs_lib.read_config(path)
  assert runs_lib.run(config, path, False)['rounds'] == 2
  code, _, error = said[1][1]
  assert code == 2 and error.count('\n') == 1
  assert error.startswith('error: ') and '--dirichlet.alpha' in error


def test_deterministic_kernels(said):
  """Also where layers draw while they are built."""
  path, (*_, (code, _, error)) = said
  assert code == 0, error
  written = path.with_name('digits_other') / 'summary.json'
  assert json.loads(written.read_text())['rounds'] == 2
