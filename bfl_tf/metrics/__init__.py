"""Scores of predictive probabilities, in NumPy with float64 arithmetic.

`probs` has shape `[num_examples, num_classes]`, or `[num_samples, num_examples,
num_classes]`; scores use the mean over samples. `labels` are integers
`[num_examples]`. Other arguments raise a ValueError. Entropies and likelihoods
are in nats, all other scores are fractions.
"""

from bfl_tf.metrics.calibration import (
  adaptive_calibration_error,
  classwise_calibration_error,
  equal_bins,
  fit_temperature,
  overconfidence,
  tempered,
)
from bfl_tf.metrics.classes import (
  balanced_accuracy,
  imbalance,
  one_against_rest,
  per_class_recall,
)
from bfl_tf.metrics.conflict import hypothesis_conflict
from bfl_tf.metrics.conformal import (
  interval_half_width,
  residual_counts,
  score_counts,
  SET_SCORES,
  set_scores,
  smallest_probability,
  threshold,
)
from bfl_tf.metrics.curves import (
  gap_above,
  Reliability,
  reliability,
  reliability_of,
  retention_curve,
)
from bfl_tf.metrics.detection import Detection, detection
from bfl_tf.metrics.predictive import is_correct
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
  Score,
  SCORES,
  summarize,
  TABLE,
)
from bfl_tf.metrics.scores import (
  accuracy,
  brier_score,
  expected_calibration_error,
  log_losses,
  MIN_PROBABILITY,
  negative_log_likelihood,
)
from bfl_tf.metrics.selective import ranking_gain, selective, selective_errors
from bfl_tf.metrics.uncertainty import (
  aleatoric_uncertainty,
  epistemic_uncertainty,
  mutual_information,
  normalized_entropy,
)
