"""Rankings of examples by an uncertainty.

In selective prediction (abstention), the model answers the examples whose
uncertainty is at most a threshold. Coverage is the fraction of these examples,
risk is their error rate. A threshold includes all equally uncertain examples or
none. The area averages over random orders of ties, so the order of the examples
does not matter.

In out-of-distribution detection, the uncertainty should be larger for
out-of-distribution examples (out) than for in-distribution examples (in).

#### References

[1]: Yonatan Geifman et al. Bias-Reduced Uncertainty Estimation for Deep Neural
     Classifiers. _ICLR_, 2019.
[2]: Shiyu Liang et al. Enhancing the Reliability of Out-of-Distribution Image
     Detection in Neural Networks. _ICLR_, 2018.
[3]: Dan Hendrycks et al. Deep Anomaly Detection with Outlier Exposure. _ICLR_,
     2019.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy import typing as npt
from scipy import stats

from bfl_tf.metrics import predictive

# Coverage of `accuracy_at_80_coverage`, and risk of `coverage_at_5_risk`.
_COVERAGE, _RISK = 0.8, 0.05


class RetentionCurve(NamedTuple):
  """Accuracy `[num_examples]` of the least uncertain examples, by fraction.

  The fraction retained goes from 1 / num_examples to 1.
  """

  retained: np.ndarray
  accuracy: np.ndarray

  @property
  def area(self) -> float:
    """Mean accuracy over the fractions retained, in [0, 1]; higher is better.

    An uninformative uncertainty has the plain accuracy as its area.
    """
    return float(self.accuracy.mean())


def retention_curve(
  uncertainty: npt.ArrayLike, correct: npt.ArrayLike
) -> RetentionCurve:
  """Accuracy of the examples that remain without the most uncertain ones.

  Equally uncertain examples count with their mean accuracy. All functions of
  this module accept any monotone measure of uncertainty, `[num_examples]`.
  """
  uncertainty = predictive.check_per_example('uncertainty', uncertainty)
  ranks = np.arange(1, uncertainty.size + 1)
  correct = predictive.check_per_example('correct', correct, ranks.size)
  _, group, sizes = np.unique(
    uncertainty, return_inverse=True, return_counts=True
  )
  # Within a group of equal uncertainty, the number of hits is interpolated.
  hits = np.cumsum(np.bincount(group, weights=correct))
  right = np.interp(ranks, np.append(0, np.cumsum(sizes)), np.append(0, hits))
  return RetentionCurve(ranks / ranks.size, right / ranks)


class Abstention(NamedTuple):
  """Accuracy gained by abstaining on uncertain examples.

  Attributes:
    aurc: Area under the risk-coverage curve, in [0, 1]; lower is better.
    excess_aurc: Area minus that of a perfect ranking with as many errors; 0 is
      perfect.
    accuracy_at_80_coverage: Accuracy at the smallest coverage of at least 80 %
      that a threshold reaches.
    coverage_at_5_risk: Largest coverage that a threshold reaches at a risk of
      at most 5 %; 0 if there is none.
  """

  aurc: float
  excess_aurc: float
  accuracy_at_80_coverage: float
  coverage_at_5_risk: float


def selective(uncertainty: npt.ArrayLike, correct: npt.ArrayLike) -> Abstention:
  """Scores an uncertainty as a criterion for abstention."""
  curve, best = _with_best(uncertainty, correct)
  # A threshold reaches only the last example of each group of ties.
  ordered = np.sort(uncertainty)
  ends = np.append(ordered[1:] > ordered[:-1], True)
  accuracy, retained = curve.accuracy[ends], curve.retained[ends]
  # The tolerance is for rounding: in floats, 1 - 19/20 exceeds 0.05.
  coverage = retained[1 - accuracy <= _RISK + 1e-9]
  return Abstention(
    1 - curve.area,
    best.area - curve.area,
    float(accuracy[retained >= _COVERAGE - 1e-9][0]),
    float(coverage[-1]) if coverage.size else 0.0,
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
  """Scores an uncertainty as a criterion for abstention, for numeric labels."""
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
  same for a perfect ranking: 1 for a perfect ranking, 0 for a random one, and 0
  if all predictions are correct or all are wrong.
  """
  curve, best = _with_best(uncertainty, correct)
  accuracy = float(curve.accuracy[-1])
  possible = best.area - accuracy
  return (curve.area - accuracy) / possible if possible > 0 else 0.0


def _with_best(uncertainty, correct):
  wrong = 1.0 - np.asarray(correct, np.float64)
  return (
    retention_curve(uncertainty, correct),
    retention_curve(wrong, correct),
  )


class Detection(NamedTuple):
  """Scores of out-of-distribution detection by an uncertainty.

  Attributes:
    auroc: Probability that an out example is more uncertain than an in example;
      ties count half.
    aupr_out: Average precision with out examples as positives.
    aupr_in: Average precision with in examples as positives.
    fpr_at_95: Fraction of in examples flagged at the threshold that flags 95 %
      of out examples, as in [3]. In [2] the positives are in examples.
  """

  auroc: float
  aupr_out: float
  aupr_in: float
  fpr_at_95: float


def detection(
  uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike
) -> Detection:
  """Scores an uncertainty, `[num_in]` and `[num_out]`, as a detector."""
  inside = predictive.check_per_example('uncertainty_in', uncertainty_in)
  outside = predictive.check_per_example('uncertainty_out', uncertainty_out)
  from sklearn import metrics  # The import takes a second.

  values = np.concatenate([inside, outside])
  is_out = np.arange(values.size) >= inside.size
  false_rate, recall, _ = metrics.roc_curve(
    is_out, values, drop_intermediate=False
  )
  return Detection(
    auroc=float(metrics.auc(false_rate, recall)),
    aupr_out=float(metrics.average_precision_score(is_out, values)),
    aupr_in=float(metrics.average_precision_score(~is_out, -values)),
    fpr_at_95=float(false_rate[np.argmax(recall >= 0.95)]),
  )
