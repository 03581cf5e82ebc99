"""Scores of predictive probabilities, in NumPy with float64 arithmetic.

`probs` has shape `[num_examples, num_classes]`, and `labels` are integers
`[num_examples]`. Other arguments raise a ValueError. Entropies and likelihoods
are in nats, all other scores are fractions.
"""

from bfl_tf.metrics.calibration import (
  adaptive_calibration_error,
  classwise_calibration_error,
  equal_bins,
  expected_calibration_error,
  fit_temperature,
  gap_above,
  overconfidence,
  Reliability,
  reliability,
  reliability_of,
  tempered,
)
from bfl_tf.metrics.conformal import (
  interval_half_width,
  residual_counts,
  score_counts,
  SET_SCORES,
  set_scores,
  smallest_probability,
  threshold,
)
from bfl_tf.metrics.predictive import is_correct
from bfl_tf.metrics.ranking import (
  Detection,
  detection,
  ranking_gain,
  retention_curve,
  selective,
  selective_errors,
)
from bfl_tf.metrics.regression import (
  crps,
  gaussian_nll,
  half_width,
  NumericEvaluation,
  pit,
  rmse,
)
from bfl_tf.metrics.score_table import (
  as_text,
  Evaluation,
  find,
  REGRESSION,
  SCORES,
  summarize,
  TABLE,
  TEMPERED,
  tempered_scores,
)
from bfl_tf.metrics.scores import (
  accuracy,
  balanced_accuracy,
  brier_score,
  hypothesis_conflict,
  imbalance,
  log_losses,
  MIN_PROBABILITY,
  mutual_information,
  negative_log_likelihood,
  normalized_entropy,
  one_against_rest,
  per_class_recall,
)
