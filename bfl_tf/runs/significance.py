"""Student's t-test on differences over seeds, with Holm's correction.

If all differences are equal, their standard error is zero and Student's t is
infinite. The exact sign test is used instead: p = 2^-n for n differences of one
sign, and twice that if the test is two-sided.

Two settings are equivalent if their mean difference is significantly above
-margin and significantly below margin (two one-sided tests).

References:
  D. J. Schuirmann. A comparison of the two one-sided tests procedure and the
  power approach for assessing the equivalence of average bioavailability.
  Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
  S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian
  Journal of Statistics 6, 1979.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.05
# Relative to the numbers, differences below this bound are rounding errors.
_SAME = 1e-9


class Test(NamedTuple):
  """One-sided p-values of a mean: above zero, and below zero."""

  p_above: float
  p_below: float

  @property
  def p_value(self) -> float:
    """Two-sided p-value."""
    return min(1.0, 2 * min(self))


def standard_error(values: np.ndarray) -> float | None:
  """Returns the standard error of the mean, or None below two values."""
  if values.size < 2:
    return None
  return float(values.std(ddof=1) / values.size**0.5)


def difference(ours: Any, theirs: Any) -> np.ndarray:
  """Returns the difference of scores; 0 within their rounding errors."""
  exact = np.subtract(ours, theirs)
  bound = _SAME * np.maximum(np.abs(ours), np.abs(theirs))
  return np.where(np.abs(exact) < bound, 0.0, exact)


def are_equal(differences: np.ndarray) -> bool:
  """Returns whether differences are equal within their rounding errors."""
  return np.ptp(differences) <= _SAME * np.abs(differences).max()


def student(differences: np.ndarray) -> Test | None:
  """Tests the mean of `[num_seeds]` differences; None below two of them."""
  from scipy import special

  error = standard_error(differences)
  if error is None:
    return None
  if are_equal(differences):
    sign, p = np.sign(differences.mean()), 0.5**differences.size
    return Test(p if sign > 0 else 1.0, p if sign < 0 else 1.0)
  t = differences.mean() / error
  tails = special.stdtr(differences.size - 1, [-t, t])
  return Test(*tails.tolist())


def equivalence(differences: np.ndarray, margin: float) -> float | None:
  """Returns the p-value of two one-sided tests; None below two differences.

  It is 0 if all differences are 0, as for methods with the same global model.
  """
  if differences.size > 1 and not differences.any():
    return 0.0
  above, below = student(differences + margin), student(differences - margin)
  if above is None or below is None:
    return None
  return max(above.p_above, below.p_below)


def holm(p_values: Sequence[float]) -> np.ndarray:
  """Returns which tests are significant after Holm's correction.

  The probability of any false positive is at most `LEVEL`, for any dependence
  between the tests.
  """
  values = np.asarray(p_values, float)
  order = np.argsort(values)
  passed = values[order] < LEVEL / np.arange(values.size, 0, -1)
  significant = np.zeros(values.size, bool)
  significant[order] = np.logical_and.accumulate(passed)
  return significant
