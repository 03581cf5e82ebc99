"""The benchmark runs, says what it measured, and refuses what it has not."""

import pathlib
import re
import subprocess
import sys

import pytest

from bfl_tf import pooling


def benchmark(*arguments):
  return subprocess.run(
    [sys.executable, '-m', 'experiments.benchmark', *arguments],
    cwd=pathlib.Path(__file__).parents[2],
    capture_output=True,
    text=True,
    timeout=300,
  )


def test_pooling_is_flat_in_clients():
  process = benchmark(
    '--case=pooling', '--num_clients=12', '--num_params=20000', '--repeats=1'
  )
  assert process.returncode == 0, process.stderr
  pattern = r'(\w+) +peak ([\d.]+) vectors at 10 clients, ([\d.]+) at 12; +'
  pattern += r'([\d.]+) GB/s, plain copy ([\d.]+) GB/s\n'
  lines = re.findall(pattern, process.stdout)
  assert [line[0] for line in lines] == list(pooling.RULES)
  for _, at_10, at_12, *_ in lines:
    # No vector more for two clients more: 0.1 is what a line shows.
    assert float(at_12) <= float(at_10) + 0.1


@pytest.mark.slow
def test_round():
  process = benchmark('--case=round', '--models=lenet5', '--repeats=1')
  assert process.returncode == 0, process.stderr
  lines = process.stdout.splitlines()
  assert [line.split()[:2] for line in lines] == [
    ['lenet5', 'deterministic'],
    ['lenet5', 'flipout'],
  ]
  for line in lines:
    assert float(re.search(r'ratio ([\d.]+)', line)[1]) > 0.1
    assert re.search(r'traces \[1(, 1)*\]', line)


@pytest.mark.parametrize(
  'flag, message',
  [
    ('--case=rounds', '--case=rounds: choose round or pooling'),
    ('--models=resnet18', '--models takes .*, not resnet18'),
    ('--repeats=0', 'repeats'),
  ],
)
def test_refused(flag, message):
  process = benchmark(flag)
  assert process.returncode == 2, process.stderr
  lines = [x for x in process.stderr.splitlines() if x.startswith('error:')]
  assert len(lines) == 1
  assert re.search(message, lines[0])
  assert 'Traceback' not in process.stderr
