"""Student's t on differences over seeds, and Holm's correction over several.

Every test of a claim is one-sided, at `LEVEL`. Two standard errors would be
9 % at three seeds and 5.8 % at five; Student's quantile is 5 % at any number.

Differences that are all the same leave Student's test without a spread to
judge by: its t is infinite, however few the seeds and however coarse the
measure. What is left are their signs, so the test is the exact sign test: 2^-n
for n differences of one sign. Three alike decide nothing, five do.

References:
  Student. The probable error of a mean. Biometrika 6, 1908.
  S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian
  Journal of Statistics 6, 1979.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np

from experiments.harness import tables

LEVEL = 0.05
# Differences of scores that are nearer than this are one and the same, rounded.
_SAME = 1e-9


class Test(NamedTuple):
  """A two-sided test of a mean against zero.

  Attributes:
    mean: Mean of the differences.
    standard_error: Standard error of the mean.
    degrees_of_freedom: one less than there are differences.
    p_above: Probability of a mean as large or larger if the true mean is zero.
    p_below: Probability of a mean as small or smaller if the true mean is zero.
  """

  mean: float
  standard_error: float
  degrees_of_freedom: int
  p_above: float
  p_below: float

  @property
  def p_value(self) -> float:
    """Two-sided: of a mean as far from zero, were the true one zero."""
    return min(1.0, 2 * min(self.p_above, self.p_below))

  def visible(self, num_tests: int = 1) -> float:
    """Returns the smallest mean that such a spread lets a test show.

    A true mean of this size is shown in 55 to 60 % of repetitions with three to
    five differences, one of 1.4 times it in 80 %.

    Args:
      num_tests: Number of tests under Holm's correction, none of the others
        significant: the level is `LEVEL / num_tests`.

    Returns:
      The mean, to either side.
    """
    level = LEVEL / num_tests
    if not self.standard_error:
      return (
        0.0 if _all_alike(self.degrees_of_freedom + 1) < level else math.inf
      )
    from scipy import stats  # It takes half a second.

    quantile = stats.t.ppf(1 - level, self.degrees_of_freedom)
    return float(quantile) * self.standard_error


def student(differences: np.ndarray) -> Test | None:
  """Tests whether a mean differs from zero.

  Args:
    differences: `[num_seeds]`, finite, independent, about normal.

  Returns:
    The test; None below two differences, which have no spread.
  """
  error = tables.standard_error(differences)
  if error is None:
    return None
  mean, freedom = float(differences.mean()), differences.size - 1
  if np.ptp(differences) < _SAME:
    return Test(mean, 0.0, freedom, *_signs(mean, differences.size))
  from scipy import stats

  p_values = [
    float(stats.ttest_1samp(differences, 0, alternative=side).pvalue)
    for side in ('greater', 'less')
  ]
  return Test(mean, error, freedom, *p_values)


def _signs(mean, count):
  if abs(mean) < _SAME:
    return 1.0, 1.0
  p = _all_alike(count)
  return (p, 1.0) if mean > 0 else (1.0, p)


def _all_alike(count):
  """Returns the probability that all differences have a given sign by
  chance."""
  return 0.5**count


def holm(p_values: Sequence[float]) -> np.ndarray:
  """Says which of several tests are significant, all of them together.

  Args:
    p_values: `[num_tests]`.

  Returns:
    Booleans `[num_tests]`: the chance that any of them is true by mistake is at
    most `LEVEL`, however the tests depend on each other.
  """
  values = np.asarray(p_values, float)
  order = np.argsort(values)
  passed = values[order] < LEVEL / np.arange(values.size, 0, -1)
  significant = np.zeros(values.size, bool)
  significant[order] = np.logical_and.accumulate(passed)
  return significant
