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
@pytest.mark.parametrize(
  ('flags', 'measured'),
  [
    ('round --models=lenet5 --repeats=1', r'ratio ([\d.]+)'),
    ('ensemble --models=lenet5 --repeats=1', r'step ([\d.]+) \('),
    (
      'flower --models=lenet5 --repeats=1 --num_clients=2 --num_batches=1 '
      '--num_workers=1',
      r'([\d.]+) times as fast',
    ),
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


@pytest.mark.process
def test_refused(said):
  for flag, (code, _, error) in zip(('case', 'repeats'), said[1:], strict=True):
    assert code == 2, error
    assert error.startswith('error: ') and error.count('\n') == 1
    assert flag in error
