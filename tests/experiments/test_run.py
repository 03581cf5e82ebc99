"""Tests of the binary experiments.run, with two rounds on digits."""

import json

import binaries
import numpy as np
import pytest

from experiments import outcomes

pytestmark = pytest.mark.process


SMALL = (
  '--num_rounds=2', '--mlp.hidden_units=8', '--num_mc_samples=2',
  '--num_clients=4', '--partition=dirichlet',
)  # fmt: skip


@pytest.fixture(scope='module')
def outputs(tmp_path_factory):
  """Outputs of a run and of a run with deterministic kernels."""
  path = tmp_path_factory.mktemp('runs') / 'new' / 'digits'
  plain = [*SMALL, f'--output_dir={path}']
  other = [*SMALL, '--deterministic', f'--output_dir={path}_other']
  return path, binaries.drive('experiments.run', [plain, other])


@pytest.fixture(scope='module')
def finished(outputs):
  path, ((code, out, error), *_) = outputs
  assert code == 0, error
  return path, out


def test_a_run_writes_consistent_files_and_prints_its_accuracy(finished):
  path, out = finished
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


def test_a_run_with_deterministic_kernels_finishes(outputs):
  """Deterministic kernels also work if layers draw while they are built."""
  path, (*_, (code, _, error)) = outputs
  assert code == 0, error
  written = path.with_name('digits_other') / 'summary.json'
  assert json.loads(written.read_text('utf-8'))['rounds'] == 2


def test_several_clients_per_device_give_the_same_results(finished):
  path, _ = finished
  other = path.with_name('digits_shared')
  code, _, error = binaries.run(
    'experiments.run', *SMALL, f'--output_dir={other}', '--num_workers=1',
    '--clients_per_device=3',
  )  # fmt: skip
  assert code == 0, error
  assert outcomes.of(other) == outcomes.of(path)
