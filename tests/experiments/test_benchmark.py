"""The benchmark runs, says what it measured, and refuses what it has not."""

import csv
import importlib.util
import re

import binaries
import pytest

from bfl_tf import models, pooling
from bfl_tf.pooling import robust
from experiments.benchmarks import random_images


@pytest.fixture(scope='module')
def said():
  """What the binary says: of memory, and to what is wrong; one process."""
  return binaries.drive(
    'experiments.benchmark',
    [
      ['--case=pooling', '--num_clients=12', '--num_params=20000',
       '--repeats=1'],
      ['--case=rounds'],
      ['--repeats=0', '--case=pooling'],
    ],
  )  # fmt: skip


@pytest.mark.process
def test_memory_of_pooling_is_flat_in_clients_but_of_robust_rules(said):
  code, out, error = said[0]
  assert code == 0, error
  pattern = r'(\w+) +peak ([\d.]+) vectors at 10 clients, ([\d.]+) at 12; +'
  pattern += r'([\d.]+) GB/s, plain copy ([\d.]+) GB/s\n'
  lines = re.findall(pattern, out)
  assert [line[0] for line in lines] == list(pooling.RULES)
  for name, at_10, at_12, *_ in lines:
    grown = float(at_12) - float(at_10)
    if name in robust.ROBUST:
      # Two vectors of each are kept.
      assert grown >= 3.9
    else:
      # No vector more for two clients more: 0.1 is what a line shows. Of the
      # product too, where no client has a factor.
      assert grown <= 0.1


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
  ('flags', 'measured'),
  [
    ('round --models=lenet5 --repeats=1', r'ratio ([\d.]+)'),
    ('ensemble --models=lenet5 --repeats=1', r'step ([\d.]+) \('),
    (
      'flower_memory --num_clients=20 --num_params=100000 --num_workers=1',
      r'([\d.]+) times \(at most',
    ),
  ],
)
def test_a_case_is_measured(flags, measured):
  if flags.startswith('flower'):
    pytest.importorskip('flwr')
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
def test_refused(said):
  for flag, (code, _, error) in zip(('case', 'repeats'), said[1:], strict=True):
    assert code == 2, error
    assert error.startswith('error: ') and error.count('\n') == 1
    assert flag in error
