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
  """Scores of out-of-distribution detection by an uncertainty.

  Attributes:
    auroc: the chance that an example out is more uncertain than one in, half
      for ties; 0.5 for a score that knows nothing.
    aupr_out: area under precision over recall, as average precision, with out
      as the positives; the share of out for a score that knows nothing.
    aupr_in: Area under the precision-recall curve with in-distribution examples
      as positives.
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
  from sklearn import metrics  # A second of imports.

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
