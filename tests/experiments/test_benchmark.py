"""Tests of the benchmark binary."""

import re

import binaries
import numpy as np
import pytest

from experiments.benchmarks import growth


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
    (
      'growth --num_clients=100 --num_params=100000 --repeats=1',
      r'seconds\^([\d.]+) ± [\d.]+, MiB(?s:.*)longest client\n8 ',
    ),
    ('ensemble --models=lenet5 --repeats=1', r'step ([\d.]+) \('),
  ],
)
def test_every_case_prints_its_measurement(flags, measured):
  code, out, error = binaries.run(
    'experiments.benchmark', *f'--case={flags}'.split()
  )
  assert code == 0, error
  assert float(re.search(measured, out)[1]) > 0.1


def test_growth_exponents_are_slopes_over_the_larger_half_of_sizes():
  sizes = 10.0 ** np.arange(6)
  paid_once = np.array([100, 100, 100, 0, 0, 0])
  assert growth.exponent(sizes, 3 * sizes**0.5 + paid_once) == pytest.approx(
    (0.5, 0), abs=1e-6
  )
  # Residuals -1/6, 1/3, -1/6; one degree of freedom; sum of squares of x: 2.
  assert growth.exponent(np.exp([0, 1, 2]), np.exp([0, 1, 1])) == pytest.approx(
    (1 / 2, (1 / 12) ** 0.5)
  )
  assert np.isnan(growth.exponent([1, 2], [1, 2])).all()


def test_each_job_starts_on_the_first_free_device():
  seconds = [5, 3, 3, 2, 2, 2]
  assert [growth.makespan(seconds, n) for n in (1, 2, 3, 9)] == [17, 9, 7, 5]
