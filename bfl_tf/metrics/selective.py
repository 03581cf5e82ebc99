"""Prediction with the right to stay silent: risk against coverage.

Examples are answered from the least uncertain on. Coverage is the share that is
answered, risk the error rate among these.

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
  """What silence buys.

  Attributes:
    area: under risk over coverage (AURC), in [0, 1]; lower is better.
    excess: the area less that of a perfect ranking with as many errors; 0 is
      perfect.
    accuracy_at: at a coverage of 80 %.
    coverage_at: the largest share that can be answered at a risk of 5 %; 0 if
      not even the first examples can.
  """

  area: float
  excess: float
  accuracy_at: float
  coverage_at: float


def selective(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> Selective:
  """Scores an uncertainty as the reason to stay silent.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is answered first.
    correct: `[num_examples]`, booleans.

  Raises:
    ValueError: as `retention_curve`.
  """
  curve, best = _with_best(uncertainty, correct)
  # 1 - 19/20 is a bit above 0.05.
  kept = np.flatnonzero(1 - curve.accuracy <= _RISK + 1e-9)
  place = max(0, int(np.ceil(_COVERAGE * curve.accuracy.size - 1e-9)) - 1)
  return Selective(
    area=1 - curve.area,
    excess=best.area - curve.area,
    accuracy_at=float(curve.accuracy[place]),
    coverage_at=float(curve.retained[kept[-1]]) if kept.size else 0.0,
  )


def ranking_gain(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> float:
  """How well an uncertainty tells right predictions from wrong ones.

  The area under accuracy against data retained, less the accuracy, over what a
  perfect ranking would have: so models of different accuracy compare.

  Args:
    uncertainty: `[num_examples]`, any monotone measure; low is kept first.
    correct: `[num_examples]`, booleans.

  Returns:
    gain: 1 of a perfect ranking, 0 of one by chance and where all predictions
      are right or all are wrong; below 0 of one that misleads.

  Raises:
    ValueError: as `retention_curve`.
  """
  curve, best = _with_best(uncertainty, correct)
  accuracy = float(curve.accuracy[-1])
  possible = best.area - accuracy
  return (curve.area - accuracy) / possible if possible > 0 else 0.0


def _with_best(uncertainty, correct):
  """Returns its retention curve, and that of a perfect ranking."""
  wrong = 1.0 - np.asarray(correct, np.float64)
  return (
    curves.retention_curve(uncertainty, correct),
    curves.retention_curve(wrong, correct),
  )
