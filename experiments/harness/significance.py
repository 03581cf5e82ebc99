"""Student's t on differences over seeds, and Holm's correction over several.

Every test is one-sided, at `LEVEL`. Two standard errors would be 9 % at three
seeds and 5.8 % at five; Student's quantile is 5 % at any number.

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
from scipy import special

from experiments.harness import tables

LEVEL = 0.05
# Differences of scores that are nearer than this are one and the same, rounded.
_SAME = 1e-9


class Test(NamedTuple):
  """Of a mean against zero, to both sides.

  Attributes:
    mean: of the differences.
    standard_error: of the mean.
    degrees_of_freedom: one less than there are differences.
    p_above: of a mean as large or larger, were the true one zero.
    p_below: of a mean as small or smaller, likewise.
    visible: the smallest mean that such a spread would have let the test show.
  """

  mean: float
  standard_error: float
  degrees_of_freedom: int
  p_above: float
  p_below: float
  visible: float


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
  t = mean / error
  return Test(
    mean,
    error,
    freedom,
    float(special.stdtr(freedom, -t)),
    float(special.stdtr(freedom, t)),
    float(special.stdtrit(freedom, 1 - LEVEL)) * error,
  )


def _signs(mean, count):
  p = 0.5**count
  visible = 0.0 if p < LEVEL else math.inf
  if abs(mean) < _SAME:
    return 1.0, 1.0, visible
  return (p, 1.0, visible) if mean > 0 else (1.0, p, visible)


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
