"""The benchmark runs, says what it measured, and refuses what it has not."""

import re

import binaries
import pytest

from bfl_tf import pooling
from bfl_tf.pooling import robust


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
def test_round():
  code, out, error = binaries.run(
    'experiments.benchmark', '--case=round', '--models=lenet5', '--repeats=1'
  )
  assert code == 0, error
  lines = out.splitlines()
  assert [line.split()[:2] for line in lines] == [
    ['lenet5', 'deterministic'],
    ['lenet5', 'flipout'],
  ]
  for line in lines:
    assert float(re.search(r'ratio ([\d.]+)', line)[1]) > 0.1
    assert re.search(r'traces \[1(, 1)*\]', line)


@pytest.mark.slow
@pytest.mark.process
def test_ensemble():
  code, out, error = binaries.run(
    'experiments.benchmark', '--case=ensemble', '--models=lenet5',
    '--repeats=1',
  )  # fmt: skip
  assert code == 0, error
  teachers, student = out.splitlines()
  assert teachers.startswith('lenet5    21 teachers on 10000 images')
  for line in (teachers, student):
    assert 0.1 < float(re.search(r'(?:passes|step) ([\d.]+) \(', line)[1]) < 3


@pytest.mark.slow
@pytest.mark.process
def test_flower():
  pytest.importorskip('flwr')
  code, out, error = binaries.run(
    'experiments.benchmark', '--case=flower', '--models=lenet5',
    '--num_clients=2', '--num_batches=1', '--repeats=1', '--num_workers=1',
  )  # fmt: skip
  assert code == 0, error
  _, usual, *ours = out.splitlines()
  pattern = r'lenet5 +(usual app, 2|on Flower|local engine)\D* ([\d.]+) \('
  seconds = float(re.match(pattern, usual)[2])
  for line, aim in zip(ours, (3, 5), strict=True):
    ratio = float(re.search(r'([\d.]+) times as fast', line)[1])
    found = re.match(pattern, line)
    # Of numbers with three decimals.
    assert ratio == pytest.approx(seconds / float(found[2]), rel=0.05)
    assert f'(at least {aim} wanted)' in line
    # One batch is soon trained: what takes long is to build and to trace.
    assert ratio > 1


@pytest.mark.slow
@pytest.mark.process
def test_memory_on_flower():
  pytest.importorskip('flwr')
  code, out, error = binaries.run(
    'experiments.benchmark', '--case=flower_memory', '--num_clients=20',
    '--num_params=100000', '--num_workers=1',
  )  # fmt: skip
  assert code == 0, error
  # 20 times 1.6 MB went by.
  assert '20: ' in out and out.endswith('their updates have 15 MiB\n'), out
  assert float(re.search(r'([\d.]+) times \(at most', out)[1]) < 1.1


@pytest.mark.process
def test_refused(said):
  for flag, (code, _, error) in zip(('case', 'repeats'), said[1:], strict=True):
    assert code == 2, error
    assert error.startswith('error: ') and error.count('\n') == 1
    assert flag in error
