"""Telling two sets apart by an uncertainty: out-of-distribution detection.

An uncertainty is a score that should be larger on what the model was not made
for. In are the examples of the model's own kind, out the others.

#### References

[1]: Dan Hendrycks and Kevin Gimpel. A Baseline for Detecting Misclassified and
     Out-of-Distribution Examples in Neural Networks. _ICLR_, 2017.
[2]: Shiyu Liang et al. Enhancing the Reliability of Out-of-Distribution Image
     Detection in Neural Networks. _ICLR_, 2018.
[3]: Dan Hendrycks et al. Deep Anomaly Detection with Outlier Exposure. _ICLR_,
     2019.
"""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import predictive


class Detection(NamedTuple):
  """How well an uncertainty finds what is out.

  Attributes:
    auroc: the chance that an example out is more uncertain than one in, half
      for ties; 0.5 for a score that knows nothing.
    aupr_out: area under precision over recall, as average precision, with out
      as the positives; the share of out for a score that knows nothing.
    aupr_in: likewise, with in as the positives.
    fpr_at_95: share of in that is called out where 95 % of out are, so out are
      the positives as in [3]; lower is better. [2] has it the other way round:
      the share of out that passes where 95 % of in do.
  """

  auroc: float
  aupr_out: float
  aupr_in: float
  fpr_at_95: float


def detection(
  uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike
) -> Detection:
  """Scores an uncertainty as a detector of examples out of distribution.

  Args:
    uncertainty_in: `[num_in]`, on examples of the model's own kind.
    uncertainty_out: `[num_out]`, on others.

  Returns:
    detection: a `Detection`; does not depend on the scale of the uncertainty,
      only on the order that it gives.

  Raises:
    ValueError: a set is empty, or holds what is not finite.
  """
  inside = predictive.check_per_example('uncertainty_in', uncertainty_in)
  outside = predictive.check_per_example('uncertainty_out', uncertainty_out)
  true_out, false_out = _counts(inside, outside)
  recall, false_rate = true_out / outside.size, false_out / inside.size
  return Detection(
    auroc=float(np.trapezoid(np.append(0, recall), np.append(0, false_rate))),
    aupr_out=_average_precision(true_out, false_out),
    aupr_in=_average_precision(*_counts(-outside, -inside)),
    fpr_at_95=float(false_rate[np.argmax(recall >= 0.95)]),
  )


def _counts(low, high):
  """Returns how many of `high` and of `low` are at or above each threshold.

  Thresholds are the distinct values, from the largest.
  """
  values = np.concatenate([low, high])
  _, group = np.unique(-values, return_inverse=True)
  is_high = np.arange(values.size) >= low.size
  positives = np.bincount(group, weights=is_high)
  negatives = np.bincount(group, weights=~is_high)
  return np.cumsum(positives), np.cumsum(negatives)


def _average_precision(true, false):
  gained = np.diff(true, prepend=0) / true[-1]
  return float(np.sum(gained * true / (true + false)))
