"""Table of all scores of an evaluation.

Evaluation, progress lines, `summary.json`, figures and model selection use this
table. A new score needs a function and a row.
"""

from collections.abc import Callable
import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from bfl_tf.metrics import (
  calibration,
  predictive,
  ranking,
  regression,
  scores,
)


class Evaluation(NamedTuple):
  """Predictions from which scores are computed.

  Attributes:
    probs: `[num_examples, num_classes]`, mean probabilities over samples.
    expected_entropy: `[num_examples]`, mean entropy of the samples in nats.
  """

  probs: npt.ArrayLike
  labels: npt.ArrayLike
  aleatoric: npt.ArrayLike
  epistemic: npt.ArrayLike
  expected_entropy: npt.ArrayLike
  num_bins: int = 15

  @property
  def entropy(self) -> np.ndarray:
    """The normalized entropy of each example."""
    return scores.normalized_entropy(self.probs)

  @property
  def mutual_information(self) -> np.ndarray:
    """The mutual information of each example and the weights, in nats."""
    return scores.mutual_information(self.probs, self.expected_entropy)


@dataclasses.dataclass(frozen=True)
class Score:
  """A column of `metrics.csv` and an entry of `summary.json`.

  Attributes:
    name: Name of the column. `validation_<name>` is the score on validation
      examples, `<name>_<group>` the score of an ensemble, and
      `recall_class_<name>` the recall of a class.
    unit: Unit of the score, or the meaning of 1.
    best: `high` or `low`; empty if neither is better.
    compute: Returns the score of an `Evaluation`, or of a `NumericEvaluation`
      in the table of regression; None if another module computes it.
    is_plotted: Whether figures with several scores have a panel for it.
  """

  name: str
  label: str
  unit: str
  best: str = ''
  compute: Callable[[Any], float] | None = None
  in_progress: bool = False
  in_final: bool = True
  is_plotted: bool = False


def _of(function):
  return lambda given: function(given.probs, given.labels)


def _mean(name):
  def compute(given):
    values = getattr(given, name)
    size = np.size(given.labels)
    return float(predictive.check_per_example(name, values, size).mean())

  return compute


def _ranking(name):
  def compute(given):
    correct = predictive.is_correct(given.probs, given.labels)
    return ranking.ranking_gain(getattr(given, name), correct)

  return compute


_VARIANCE = 'variance; for classes, their sum'
_GAIN = 'share of the gain of a perfect ranking'
_EPSILON = Score('epsilon', 'epsilon of --privacy',
                 'when a client is added or removed', 'low',
                 in_progress=True)  # fmt: skip
_OF_CHAIN = (
  Score('chain_effective_size', 'effective size of the chain',
        'samples, median over weights', 'high'),
  Score('chain_r_hat', 'split R-hat of the chain', 'median over weights',
        'low'),
)  # fmt: skip
_MAIN: dict[str, Any] = {'in_progress': True, 'is_plotted': True}
TABLE = (
  Score('accuracy', 'accuracy', 'fraction of test examples', 'high',
        _of(scores.accuracy), **_MAIN),
  Score('balanced_accuracy', 'balanced accuracy', 'mean recall', 'high'),
  Score('auroc', 'AUROC', 'mean over classes; 0.5 by chance', 'high'),
  Score('nll', 'negative log likelihood', 'nats per example', 'low',
        _of(scores.negative_log_likelihood), **_MAIN),
  Score('ece', 'expected calibration error', 'fraction', 'low',
        lambda given: calibration.expected_calibration_error(
          given.probs, given.labels, given.num_bins), **_MAIN),
  Score('tempered_nll', 'NLL with the fitted temperature', 'nats per example',
        'low'),
  Score('tempered_ece', 'ECE with the fitted temperature', 'fraction', 'low'),
  Score('brier', 'Brier score', 'sum over classes', 'low',
        _of(scores.brier_score), in_progress=True),
  Score('entropy', 'predictive entropy', 'fraction of log C', '',
        _mean('entropy')),
  Score('aleatoric', 'aleatoric uncertainty', _VARIANCE, '',
        _mean('aleatoric')),
  Score('epistemic', 'epistemic uncertainty', _VARIANCE, '',
        _mean('epistemic'), in_progress=True),
  Score('mutual_information', 'mutual information', 'nats per example', '',
        _mean('mutual_information')),
  Score('entropy_ranking', 'ranking by entropy', _GAIN, 'high',
        _ranking('entropy'), in_final=False),
  Score('aleatoric_ranking', 'ranking by aleatoric uncertainty', _GAIN,
        'high', _ranking('aleatoric'), in_final=False),
  Score('epistemic_ranking', 'ranking by epistemic uncertainty', _GAIN,
        'high', _ranking('epistemic'), in_final=False),
  Score('recall_class', 'recall', 'fraction of the class', 'high'),
  Score('lowest_accuracy', 'accuracy of the worst client', 'fraction', 'high'),
  Score('best_accuracy', 'accuracy of the best member', 'fraction', 'high',
        in_final=False),
  Score('mean_ece', 'mean calibration error of members', 'fraction', 'low',
        in_final=False),
  _EPSILON,
  *_OF_CHAIN,
  Score('hypothesis_conflict', 'disagreement of members', 'fraction',
        in_final=False),
)  # fmt: skip
REGRESSION = (
  Score('rmse', 'root mean squared error', 'unit of the label', 'low',
        regression.rmse, **_MAIN),
  Score('nll', 'negative log likelihood', 'nats per example', 'low',
        regression.gaussian_nll, **_MAIN),
  Score('crps', 'ranked probability score (CRPS)', 'unit of the label',
        'low', regression.crps, **_MAIN),
  Score('coverage_90', 'coverage of 90 % intervals', 'fraction', '',
        lambda given: regression.coverage(given, 0.9), in_progress=True),
  Score('width_90', 'width of 90 % intervals', 'unit of the label', '',
        lambda given: regression.width(given, 0.9)),
  Score('pit_error', 'calibration error (PIT)', 'fraction', 'low',
        regression.pit_error),
  Score('best_rmse', 'error of the best member', 'unit of the label', 'low',
        in_final=False),
  Score('aleatoric', 'aleatoric uncertainty', _VARIANCE, '',
        _mean('aleatoric')),
  Score('epistemic', 'epistemic uncertainty', _VARIANCE, '',
        _mean('epistemic'), in_progress=True),
  _EPSILON,
  *_OF_CHAIN,
)  # fmt: skip
_BY_NAME = {score.name: score for score in (*REGRESSION, *TABLE)}
# Scores that `summarize` computes for every set of examples.
SCORES = tuple(score.name for score in TABLE if score.compute)
# Scores of `tempered_scores`.
TEMPERED = ('tempered_nll', 'tempered_ece')


def find(column: str) -> Score | None:
  """Returns the score of a column of `metrics.csv`, or None."""
  name = column.removeprefix('validation_').removeprefix('personal_')
  while name and name not in _BY_NAME:
    name = name.rpartition('_')[0]
  return _BY_NAME.get(name)


def as_text(value: float) -> str:
  """Returns a score with four decimals, or four digits if it is extreme."""
  usual = not value or 1e-2 <= abs(value) < 1e6
  return f'{value:.4f}' if usual else f'{value:.4g}'


def summarize(
  given: Evaluation | regression.NumericEvaluation,
) -> dict[str, float]:
  """Returns all scores; all are NaN if a prediction is not finite."""
  table = TABLE if isinstance(given, Evaluation) else REGRESSION
  computed = {s.name: s.compute for s in table if s.compute}
  predicted = given[0], given.aleatoric, given.epistemic
  if not all(np.all(np.isfinite(values)) for values in predicted):
    return dict.fromkeys(computed, math.nan)
  return {name: compute(given) for name, compute in computed.items()}


def tempered_scores(
  probs: npt.ArrayLike,
  labels: npt.ArrayLike,
  temperature: float,
  num_bins: int = 15,
) -> dict[str, float]:
  """Returns the scores of `TEMPERED`; NaN if a number is not finite."""
  if not np.all(np.isfinite(probs)) or not math.isfinite(temperature):
    return dict.fromkeys(TEMPERED, math.nan)
  probs = calibration.tempered(probs, temperature)
  return {
    'tempered_nll': scores.negative_log_likelihood(probs, labels),
    'tempered_ece': calibration.expected_calibration_error(
      probs, labels, num_bins
    ),
  }
