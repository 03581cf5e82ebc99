"""Selective prediction (abstention): risk against coverage.

The model answers the examples whose uncertainty is at most a threshold.
Coverage is the fraction of these examples, risk is their error rate. A
threshold includes all equally uncertain examples or none. The area averages
over random orders of ties, so the order of the examples does not matter.

#### References

[1]: Yonatan Geifman et al. Bias-Reduced Uncertainty Estimation for Deep Neural
     Classifiers. _ICLR_, 2019.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy import typing as npt
from scipy import stats

from bfl_tf.metrics import curves, predictive

# Coverage of `accuracy_at`, and risk of `coverage_at`.
_COVERAGE, _RISK = 0.8, 0.05


class Abstention(NamedTuple):
  """Accuracy gained by abstaining on uncertain examples.

  Attributes:
    area: Area under the risk-coverage curve (AURC), in [0, 1]; lower is better.
    excess: Area minus that of a perfect ranking with as many errors; 0 is
      perfect.
    accuracy_at: Accuracy at the smallest coverage of at least 80 % that a
      threshold reaches.
    coverage_at: Largest coverage that a threshold reaches at a risk of at most
      5 %; 0 if there is none.
  """

  area: float
  excess: float
  accuracy_at: float
  coverage_at: float


def selective(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> Abstention:
  """Scores an uncertainty as a criterion for abstention.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is answered first.
    correct: `[num_examples]`, booleans.
  """
  curve, best = _with_best(uncertainty, correct)
  # A threshold reaches only the last example of each group of ties.
  ordered = np.sort(uncertainty)
  ends = np.append(ordered[1:] > ordered[:-1], True)
  accuracy, retained = curve.accuracy[ends], curve.retained[ends]
  # The tolerance is for rounding: in floats, 1 - 19/20 exceeds 0.05.
  coverage = retained[1 - accuracy <= _RISK + 1e-9]
  return Abstention(
    area=1 - curve.area,
    excess=best.area - curve.area,
    accuracy_at=float(accuracy[retained >= _COVERAGE - 1e-9][0]),
    coverage_at=float(coverage[-1]) if coverage.size else 0.0,
  )


class SelectiveErrors(NamedTuple):
  """Errors of numeric predictions, with abstention on uncertain examples.

  Attributes:
    rmse_at_80_coverage: RMSE at the smallest coverage of at least 80 % that a
      threshold reaches.
    rank_correlation: Spearman's correlation of uncertainty and absolute error;
      0 if either is constant.
  """

  rmse: float
  rmse_at_80_coverage: float
  rank_correlation: float


def selective_errors(
  uncertainty: npt.ArrayLike, errors: npt.ArrayLike
) -> SelectiveErrors:
  """Scores an uncertainty as a criterion for abstention, for numeric labels.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is answered first.
  """
  uncertainty = predictive.check_per_example('uncertainty', uncertainty)
  errors = np.asarray(errors, np.float64)
  count = math.ceil(_COVERAGE * errors.size - 1e-9)
  retained = errors[uncertainty <= np.sort(uncertainty)[count - 1]]
  correlation = 0.0
  if np.ptp(uncertainty) and np.ptp(errors):
    correlation = float(stats.spearmanr(uncertainty, errors).statistic)
  rmse, rmse_of_kept = (
    float(np.sqrt(np.mean(np.square(each)))) for each in (errors, retained)
  )
  return SelectiveErrors(rmse, rmse_of_kept, correlation)


def ranking_gain(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> float:
  """Returns the quality of an uncertainty's ranking of wrong predictions.

  This is the area under the retention curve minus the accuracy, divided by the
  same for a perfect ranking. It compares models of different accuracy.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is kept first.

  Returns:
    gain: 1 for a perfect ranking, 0 for a random one, below 0 for a misleading
      one; 0 if all predictions are correct or all are wrong.
  """
  curve, best = _with_best(uncertainty, correct)
  accuracy = float(curve.accuracy[-1])
  possible = best.area - accuracy
  return (curve.area - accuracy) / possible if possible > 0 else 0.0


def _with_best(uncertainty, correct):
  wrong = 1.0 - np.asarray(correct, np.float64)
  return (
    curves.retention_curve(uncertainty, correct),
    curves.retention_curve(wrong, correct),
  )
