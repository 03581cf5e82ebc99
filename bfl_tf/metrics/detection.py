"""Out-of-distribution detection by an uncertainty.

The uncertainty should be larger for out-of-distribution examples (out) than for
in-distribution examples (in).

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
    auroc: Probability that an out example is more uncertain than an in example;
      ties count half. Chance level is 0.5.
    aupr_out: Average precision with out examples as positives. Chance level is
      the fraction of out examples.
    aupr_in: Average precision with in examples as positives.
    fpr_at_95: Fraction of in examples flagged at the threshold that flags 95 %
      of out examples, as in [3]; lower is better. In [2] the positives are in
      examples.
  """

  auroc: float
  aupr_out: float
  aupr_in: float
  fpr_at_95: float


def detection(
  uncertainty_in: npt.ArrayLike, uncertainty_out: npt.ArrayLike
) -> Detection:
  """Scores an uncertainty as a detector of out-of-distribution examples.

  Args:
    uncertainty_in: `[num_in]`, uncertainty of in-distribution examples.
    uncertainty_out: `[num_out]`, uncertainty of out-of-distribution examples.
  """
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
