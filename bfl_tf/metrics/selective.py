"""Selective prediction (abstention): risk against coverage.

The model answers the examples whose uncertainty is at most a threshold.
Coverage is the share of these examples, risk their error rate. A threshold
answers all equally uncertain examples or none. The area averages over random
orders of these, so that it does not depend on the order of the examples.

#### References

[1]: Yonatan Geifman et al. Bias-Reduced Uncertainty Estimation for Deep Neural
     Classifiers. _ICLR_, 2019.
"""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import curves

# Where accuracy and coverage are read.
_COVERAGE, _RISK = 0.8, 0.05


class Selective(NamedTuple):
  """Accuracy gained by abstaining on uncertain examples.

  Attributes:
    area: under risk over coverage (AURC), in [0, 1]; lower is better.
    excess: the area less that of a perfect ranking with as many errors; 0 is
      perfect.
    accuracy_at: Accuracy at the smallest coverage of at least 80 % that a
      threshold reaches.
    coverage_at: the largest coverage that a threshold reaches at a risk of at
      most 5 %; 0 if there is none.
  """

  area: float
  excess: float
  accuracy_at: float
  coverage_at: float


def selective(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> Selective:
  """Scores an uncertainty as the reason to abstain.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is answered first.
    correct: `[num_examples]`, booleans.

  Raises:
    ValueError: Raised as by `retention_curve`.
  """
  curve, best = _with_best(uncertainty, correct)
  # A threshold reaches only the last example of each group of ties.
  ordered = np.sort(uncertainty)
  ends = np.append(ordered[1:] > ordered[:-1], True)
  accuracy, retained = curve.accuracy[ends], curve.retained[ends]
  # 1 - 19/20 is a bit above 0.05.
  kept = retained[1 - accuracy <= _RISK + 1e-9]
  return Selective(
    area=1 - curve.area,
    excess=best.area - curve.area,
    accuracy_at=float(accuracy[retained >= _COVERAGE - 1e-9][0]),
    coverage_at=float(kept[-1]) if kept.size else 0.0,
  )


def ranking_gain(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> float:
  """Returns how well an uncertainty ranks wrong predictions first.

  The area under accuracy against data retained, less the accuracy, over what a
  perfect ranking would have: so models of different accuracy compare.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is kept first.
    correct: `[num_examples]`, booleans.

  Returns:
    gain: 1 of a perfect ranking, 0 of one by chance and where all predictions
      are right or all are wrong; below 0 of one that misleads.

  Raises:
    ValueError: Raised as by `retention_curve`.
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
