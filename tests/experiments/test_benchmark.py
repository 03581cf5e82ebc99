"""Tests of the benchmark binary."""

import re

import binaries
import pytest


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
  ('flags', 'measured'),
  [
    ('round --models=lenet5 --repeats=1', r'ratio ([\d.]+)'),
    (
      'gpu --models=lenet5 --repeats=1',
      r'compiled, 1 per device +(\d+)(?s:.*)no file differs',
    ),
  ],
)
def test_every_case_prints_its_measurement(flags, measured):
  code, out, error = binaries.run(
    'experiments.benchmark', *f'--case={flags}'.split()
  )
  assert code == 0, error
  assert float(re.search(measured, out)[1]) > 0.1
