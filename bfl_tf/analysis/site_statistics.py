"""Sums over the labelled examples of a site, which determine its scores.

The sums of several sites can be added. A server can then score all sites
together without their examples or predictions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import metrics
from bfl_tf.analysis import prediction_sets, risk
from bfl_tf.analysis.model import NumericPrediction, Prediction
from bfl_tf.metrics import conformal

# Number of bins of the calibration error, the default of --num_bins.
_NUM_BINS = 15
_LARGEST = np.finfo(np.float64).max


class SiteStatistics(NamedTuple):
  """Sums over the examples of one site, or of several.

  Attributes:
    examples: `[num_classes]`, number of examples of each class.
    binned: `[3, num_bins]` by confidence: number of examples, number of correct
      predictions, sum of the confidences.
    covered: `[num_levels, num_classes]`, number of sets with the label.
    sizes: `[num_levels, num_classes]`, sum of the set sizes.
    single: `[num_levels, num_classes]`, number of sets with a single class.
    single_right: `[num_levels, num_classes]`, number of sets with the label as
      their single class.
    auroc: `[num_classes]`, one-vs-rest AUROC of a single site; NaN if unknown,
      as for several sites.
    risk: `[2, num_bins]`, number of examples as returned by `risk.counts`.
  """

  examples: np.ndarray
  right: np.ndarray
  loss: np.ndarray
  binned: np.ndarray
  covered: np.ndarray
  sizes: np.ndarray
  single: np.ndarray
  single_right: np.ndarray
  auroc: np.ndarray
  risk: np.ndarray

  @classmethod
  def of(
    cls,
    probs: np.ndarray,
    y: np.ndarray,
    sets: prediction_sets.PredictionSets | None,
  ) -> 'SiteStatistics':
    """Returns the sums over examples with probabilities and labels `y`."""
    num_classes = probs.shape[1]

    def by_class(values):
      return np.bincount(y, values, num_classes).astype(np.int64)

    members = sets.classes(probs) if sets else []
    by_level = np.zeros([4, len(members), num_classes], np.int64)
    for at, in_set in enumerate(members):
      covered, sizes = in_set[np.arange(y.size), y], in_set.sum(-1)
      single = sizes == 1
      kinds = covered, sizes, single, single & covered
      by_level[:, at] = [by_class(values) for values in kinds]
    covered, sizes, single, single_right = by_level
    bins = metrics.reliability(probs, y, _NUM_BINS)
    confidence = np.nan_to_num(bins.confidence) * bins.counts
    return cls(
      by_class(np.ones(y.size)),
      by_class(metrics.is_correct(probs, y)),
      metrics.log_losses(probs, y).sum(),
      np.stack([bins.counts, bins.right, confidence]),
      covered,
      sizes,
      single,
      single_right,
      metrics.one_against_rest(probs, y),
      risk.counts(probs, y),
    )

  def check(self, num_examples: int) -> None:
    """Raises a ValueError if `num_examples` cannot give these sums."""
    for counts in (self.examples, self.binned[0], self.risk):
      check_counts(counts, num_examples)
    most = {
      **dict.fromkeys(('right', 'covered', 'single'), self.examples),
      # Float32 probabilities may exceed 1 by a rounding error.
      'binned': 1.001 * self.binned[0],
      'auroc': 1,
      'loss': -1.001 * num_examples * np.log(metrics.MIN_PROBABILITY),
      'sizes': self.examples * self.examples.size,
      'single_right': np.minimum(self.single, self.covered),
    }
    known = self._replace(auroc=np.where(np.isnan(self.auroc), 0, self.auroc))
    _check_bounds(known, {}, most)

  @property
  def reliability(self) -> metrics.Reliability:
    """Accuracy and mean confidence by bin of the confidence."""
    counts, right, confidence = self.binned
    with np.errstate(invalid='ignore'):
      means = right / counts, confidence / counts
    edges = np.arange(_NUM_BINS + 1) / _NUM_BINS
    return metrics.Reliability(edges, *means, counts.astype(np.int64), right)

  @property
  def recall(self) -> np.ndarray:
    """Recall `[num_classes]`; NaN for a class without examples."""
    with np.errstate(invalid='ignore'):
      return self.right / self.examples

  def row(self, sets: prediction_sets.PredictionSets | None) -> dict[str, Any]:
    """Returns the scores of all examples; None for an unknown score."""
    size = int(self.examples.sum())
    known = self.auroc[np.isfinite(self.auroc)]
    return {
      'num_examples': size,
      'accuracy': float(self.right.sum() / size),
      'balanced_accuracy': float(np.nanmean(self.recall)),
      'auroc': float(known.mean()) if known.size else None,
      'nll': float(self.loss / size),
      'ece': self.reliability.expected_calibration_error,
      **self._set_scores(sets, np.s_[:]),
    }

  def class_row(
    self, number: int, sets: prediction_sets.PredictionSets | None
  ) -> Mapping[str, Any]:
    """Returns the scores of a class, or only `num_examples` if it is 0."""
    row: dict[str, Any] = {'num_examples': int(self.examples[number])}
    if not row['num_examples']:
      return row
    row['recall'] = float(self.recall[number])
    if np.isfinite(self.auroc[number]):
      row['auroc'] = float(self.auroc[number])
    return row | self._set_scores(sets, np.s_[number : number + 1])

  def set_rows(
    self,
    sets: prediction_sets.PredictionSets,
    event: int,
    classes: Sequence[str],
  ) -> Iterator[dict[str, Any]]:
    """Yields the number of examples and of events by prediction set.

    An event is an example with the label `classes[event]`, of two classes.
    """
    labels = np.array([1 - event, event])
    for at, level in enumerate(sets.levels):
      right, single, sizes = (
        sums[at, labels].astype(int)
        for sums in (self.single_right, self.single, self.sizes)
      )
      # A set with one class that is not the label has the other class.
      wrong = single - right
      counts = {
        (event,): (right[1], wrong[0]),
        (1 - event,): (wrong[1], right[0]),
        (0, 1): (sizes - single)[::-1] // 2,
      }
      for members, (events, others) in counts.items():
        yield {
          'level': level,
          'set': '|'.join(classes[c] for c in members),
          'num_examples': int(events + others),
          'num_events': int(events),
        }

  def _set_scores(self, sets, classes):
    row: dict[str, Any] = {}
    size = self.examples[classes].sum()
    for at, level in enumerate(sets.levels if sets else ()):
      covered, sizes, single, right = (
        float(sums[at, classes].sum())
        for sums in (self.covered, self.sizes, self.single, self.single_right)
      )
      row |= {
        f'coverage_{level:g}': covered / size,
        f'size_{level:g}': sizes / size,
        f'single_{level:g}': single / size,
        f'single_accuracy_{level:g}': right / single if single else None,
      }
    return row


class NumericStatistics(NamedTuple):
  """Sums over the examples of one site, or of several, for numeric labels.

  Attributes:
    pit: `[num_bins]`, number of examples by P(prediction <= label).
    covered: `[num_levels]`, number of intervals with the label.
    widths: `[num_levels]`, sum of the widths of the intervals.
  """

  examples: np.ndarray
  squared: np.ndarray
  loss: np.ndarray
  crps: np.ndarray
  pit: np.ndarray
  covered: np.ndarray
  widths: np.ndarray

  @classmethod
  def of(
    cls,
    prediction: NumericPrediction,
    y: np.ndarray,
    sets: prediction_sets.PredictionSets | None,
  ) -> 'NumericStatistics':
    """Returns the sums over examples; arguments as in `of`."""
    given, size = prediction.evaluation(y, _NUM_BINS), len(y)
    halves = np.array(sets.half_widths() if sets else [])
    inside = np.abs(given.residual) <= halves[:, np.newaxis]
    return cls(
      np.array(size),
      np.array(size * metrics.rmse(given) ** 2),
      np.array(size * metrics.gaussian_nll(given)),
      np.array(size * metrics.crps(given)),
      np.histogram(metrics.pit(given), _NUM_BINS, (0, 1))[0],
      inside.sum(-1),
      2 * halves * given.scale.sum(),
    )

  def check(self, num_examples: int) -> None:
    """Raises a ValueError if `num_examples` cannot give these sums."""
    check_counts(self.examples, num_examples)
    check_counts(self.pit, num_examples)
    # A density may be larger than 1, and its loss negative.
    _check_bounds(self, {'loss': -_LARGEST}, {'covered': num_examples})

  def row(self, sets: prediction_sets.PredictionSets | None) -> dict[str, Any]:
    """Returns the scores of all examples."""
    size = int(self.examples)
    below = np.cumsum(self.pit)[:-1] / size
    uniform = np.arange(1, _NUM_BINS) / _NUM_BINS
    row: dict[str, Any] = {
      'num_examples': size,
      'rmse': float(np.sqrt(self.squared / size)),
      'nll': float(self.loss / size),
      'crps': float(self.crps / size),
      'pit_error': float(np.abs(below - uniform).mean()),
    }
    for at, level in enumerate(sets.levels if sets else ()):
      row[f'coverage_{level:g}'] = float(self.covered[at] / size)
      row[f'width_{level:g}'] = float(self.widths[at] / size)
    return row


Statistics = SiteStatistics | NumericStatistics


def merged(by_site: Mapping[str, Statistics]) -> Statistics:
  """Returns the statistics of all sites, without the AUROC of several sites."""
  every: Any = [*by_site.values()]
  sums = type(every[0])(*map(sum, zip(*every)))
  if len(every) == 1 or isinstance(sums, NumericStatistics):
    return sums
  return sums._replace(auroc=np.full_like(sums.auroc, np.nan))


def of(
  prediction: Prediction | NumericPrediction,
  y: np.ndarray,
  sets: prediction_sets.PredictionSets | None,
) -> Statistics:
  """Returns the sums over examples."""
  if isinstance(prediction, NumericPrediction):
    return NumericStatistics.of(prediction, y, sets)
  return SiteStatistics.of(prediction.probs, y, sets)


class HeldCounts(NamedTuple):
  """Counts of the calibration examples of a site.

  Attributes:
    counts: `[num_classes, num_bins]`, as returned by `metrics.score_counts`;
      numeric labels are one class.
    risk: `[2, num_bins]`, number of examples as returned by `risk.counts`.
  """

  counts: np.ndarray
  risk: np.ndarray

  @classmethod
  def of(
    cls,
    prediction: Prediction | NumericPrediction,
    y: np.ndarray,
    score: str,
  ) -> 'HeldCounts':
    """Returns the counts of predicted examples."""
    if isinstance(prediction, NumericPrediction):
      residual = prediction.evaluation(y).residual
      none = risk.counts(np.zeros([0, 0]), y)
      return cls(metrics.residual_counts(residual)[np.newaxis], none)
    probs = prediction.probs
    counts = np.zeros([probs.shape[1], conformal.NUM_BINS], np.int64)
    for label in np.unique(y):
      rows = y == label
      counts[label] = metrics.score_counts(probs[rows], y[rows], score)
    return cls(counts, risk.counts(probs, y))

  def check(self, num_examples: int) -> None:
    """Raises a ValueError if `num_examples` cannot give these counts."""
    for counts in self:
      check_counts(counts, num_examples)


def _check_bounds(sums, least, most):
  """Raises a ValueError unless all sums are finite and within bounds."""
  for name, value in sums._asdict().items():
    low, high = least.get(name, 0), most.get(name, _LARGEST)
    if not np.all((low <= value) & (value <= high)):
      raise ValueError(f'its {name} is impossible for any set of examples')


def check_counts(counts: np.ndarray, num_examples: int) -> None:
  """Raises a ValueError unless integer counts add up to `num_examples`.

  An array without counts is valid.
  """
  # Each count is checked first, so that the sum cannot overflow.
  good = np.all(counts >= 0) and np.all(counts <= num_examples)
  if counts.size and not (good and counts.sum() == num_examples):
    raise ValueError(f'its counts do not match its {num_examples} examples')
