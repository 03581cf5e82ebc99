"""The benchmark runs, says what it measured, and refuses what it has not."""

import csv
import importlib.util
import re

import binaries
import numpy as np
import pytest

from bfl_tf import models
from experiments.benchmarks import growth, random_images


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
  ('flags', 'measured'),
  [
    ('round --models=lenet5 --repeats=1', r'ratio ([\d.]+)'),
    (
      'gpu --models=lenet5 --repeats=1',
      r'two runs: same bits\n(?s:.*)ratio ([\d.]+)',
    ),
    (
      'growth --num_clients=100 --num_params=100000 --repeats=1',
      r'seconds\^([\d.]+) ± [\d.]+, MiB(?s:.*)longest client\n8 ',
    ),
    ('ensemble --models=lenet5 --repeats=1', r'step ([\d.]+) \('),
  ],
)
def test_a_case_is_measured(flags, measured):
  code, out, error = binaries.run(
    'experiments.benchmark', *f'--case={flags}'.split()
  )
  assert code == 0, error
  assert float(re.search(measured, out)[1]) > 0.1


@pytest.mark.slow
@pytest.mark.process
def test_peers_play_a_round(tmp_path):
  flags = '--case=peers --models=lenet5 --variant=deterministic --repeats=1 '
  flags += f'--num_clients=2 --num_batches=1 --output_dir={tmp_path}'
  code, out, error = binaries.run(
    'experiments.benchmark', *flags.split(), timeout=900
  )
  assert code == 0, error
  rows = list(csv.DictReader((tmp_path / 'peers.csv').open()))
  assert float(rows[0]['ours over it']) == 1
  assert (tmp_path / 'peers.png').exists()
  # Nobody is left out, and a dash is of those that are not installed.
  names = ('ours', 'ours, m', 'Keras', 'PyTorch', 'Flower', 'Flower')
  for name, row in zip(names, rows, strict=True):
    assert row['peer'].startswith(name) and row['peer'] in out
    needed = {'PyTorch': 'torch', 'Flower': 'ray'}.get(name)
    if name != 'ours, m':
      there = needed is None or importlib.util.find_spec(needed)
      assert bool(row['images/s']) == bool(there)


def test_exponents_are_slopes_of_the_larger_half():
  sizes = 10.0 ** np.arange(6)
  paid_once = np.array([100, 100, 100, 0, 0, 0])
  assert growth.exponent(sizes, 3 * sizes**0.5 + paid_once) == pytest.approx(
    (0.5, 0), abs=1e-6
  )
  # Residuals of -1/6, 1/3 and -1/6, one degree of freedom, x scattered by 2.
  assert growth.exponent(np.exp([0, 1, 2]), np.exp([0, 1, 1])) == pytest.approx(
    (1 / 2, (1 / 12) ** 0.5)
  )
  assert np.isnan(growth.exponent([1, 2], [1, 2])).all()


def test_jobs_go_to_the_device_that_is_free_first():
  seconds = [5, 3, 3, 2, 2, 2]
  assert [growth.makespan(seconds, n) for n in (1, 2, 3, 9)] == [17, 9, 7, 5]


def test_growth_is_drawn_and_written(tmp_path):
  rows = [
    {'what': what, 'size': size, 'seconds': size**0.5, 'MiB': 1.0 + size}
    for what in ('clients', 'weights')
    for size in (10, 100, 1000)
  ]
  growth.write(tmp_path, rows)
  written = list(csv.DictReader((tmp_path / 'growth.csv').open()))
  assert [row['size'] for row in written] == ['10', '100', '1000'] * 2
  assert (tmp_path / 'growth.png').exists()


@pytest.mark.parametrize('name', ['resnet20', 'lenet5', 'lenet5_cifar10'])
def test_networks_of_pytorch_are_ours(name):
  torch_peer = pytest.importorskip('experiments.benchmarks.torch_peer')
  images = random_images.SHAPES[name]
  ours = models.build(
    images.network,
    variant='deterministic',
    input_shape=images.shape,
    num_classes=10,
  )
  made = torch_peer.NETWORKS[images.network](
    (images.shape[2], *images.shape[:2])
  )
  shapes = [sorted(v.shape) for v in ours.trainable_variables]
  assert sorted(shapes) == sorted(sorted(p.shape) for p in made.parameters())


@pytest.mark.process
def test_refused():
  said = binaries.drive(
    'experiments.benchmark', [['--case=rounds'], ['--repeats=0']]
  )
  for flag, (code, _, error) in zip(('case', 'repeats'), said, strict=True):
    assert code == 2, error
    assert error.startswith('error: ') and error.count('\n') == 1
    assert flag in error
