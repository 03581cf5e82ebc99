"""Uncertainty evaluation of a finished run's model.

It has four parts: out-of-distribution detection, selective prediction,
calibration with and without temperature scaling, and corrupted images. For
numeric labels, a factor on the predictive standard deviation replaces the
temperature, and images are not corrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
import itertools
import pathlib
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import data, metrics, seeds
from bfl_tf.analysis import loading, model
from bfl_tf.data import corruptions, names

Row = dict[str, Any]
# Scores that the run itself reports, of all test examples.
_OF_RUN = ('nll', 'ece', 'crps', 'coverage_90', 'width_90', 'pit_error')
# Images with smaller maxima have another scale, such as digits from 0 to 16.
_DARK = 128


class OutOfDistribution(NamedTuple):
  """Out-of-distribution examples.

  Attributes:
    x: `[num_examples, ...]`, in the shape of the run's examples.
  """

  distance: str
  name: str
  x: np.ndarray


def other(
  distance: str, text: str, like: data.Dataset, count: int = 0
) -> OutOfDistribution:
  """Loads out-of-distribution examples in the shape of the run's inputs.

  Args:
    text: Name of a data set, or `name@split`. The default split is `test` for
      TFDS, and the training examples for other sources.
  """
  name, split = text, ''
  # The path of a file may contain an @.
  if '@' in text and names.kind(text) not in names.FILES:
    name, _, split = text.rpartition('@')
  kind = names.kind(name)
  default = 'test' if kind == 'tfds' else 'train'
  x = data.load_unlabeled(
    name, split=split or default, like=like, resize=True, flag=distance
  )
  shown = pathlib.Path(name).stem if kind in names.FILES else name
  return OutOfDistribution(distance, shown, x[subset(len(x), count)])


class UncertaintyTables(NamedTuple):
  """Results of an uncertainty evaluation."""

  tables: dict[str, list[Row]]
  remarks: tuple[str, ...]


def evaluate(
  run: loading.LoadedRun,
  others: Sequence[OutOfDistribution],
  num_samples: int | None = None,
  num_examples: int = 0,
) -> UncertaintyTables:
  """Runs all four parts of the evaluation."""
  trained, remarks = run.trained, []
  test = run.test.take(subset(len(run.test.y), num_examples))
  prediction = trained.predict(test.x, num_samples)
  tables: dict[str, list[Row]] = {
    'detection': [
      row
      for outside in others
      for row in detection(
        prediction, trained.predict(outside.x, num_samples), outside
      )
    ],
    'selection': list(selection(prediction, test.y)),
    'calibration': [calibration(prediction, test.y)],
    'corruptions': [],
  }
  source = temperature_data(run)
  if source:
    name, split = source
    value = fitted_temperature(trained, split, num_samples)
    row = calibration(prediction, test.y, value)
    tables['calibration'].append(row)
    parameter = next(iter(row)).replace('_', ' ')
    remarks.append(f'a {parameter} of {value:.3f}, fitted on {name}')
  else:
    remarks.append(
      'no temperature was fitted: this needs a run with '
      '--calibration_fraction, or --calibrate_on_test=0.5 in this command'
    )
  if test.x.ndim == 4 and test.x.dtype == 'uint8':
    largest = [int(x.max()) for x in (test.x, *(other.x for other in others))]
    if min(largest) < _DARK:
      remarks.append(
        f'the largest pixel values of the sets are {largest}, but corruptions '
        'and comparisons assume 255: do not interpret their scores'
      )
    if not trained.task.is_numeric:
      seed = trained.config.seed_of_data
      tables['corruptions'] = list(corrupted(trained, test, num_samples, seed))
  return UncertaintyTables(tables, tuple(remarks))


def subset(size: int, count: int) -> np.ndarray:
  """Returns `count` of `size` indices, always the same; all if `count` is 0."""
  if not 0 < count < size:
    return np.arange(size)
  rng = seeds.generator(0, 'doubt_examples')
  return np.sort(rng.permutation(size)[:count])


def detection(
  inside: model.AnyPrediction,
  outside: model.AnyPrediction,
  other: OutOfDistribution,
) -> Iterator[Row]:
  """Yields the detection scores of each uncertainty measure."""
  for measure in inside._fields[1:]:
    scores = metrics.detection(
      inside._asdict()[measure], outside._asdict()[measure]
    )
    yield {
      'distance': other.distance,
      'set': other.name,
      'measure': measure,
      **scores._asdict(),
      'num_in': len(inside[0]),
      'num_out': len(outside[0]),
    }


def selection(prediction: model.AnyPrediction, y: np.ndarray) -> Iterator[Row]:
  """Yields the selective prediction scores of each uncertainty measure."""
  for measure, uncertain in [*prediction._asdict().items()][1:]:
    if isinstance(prediction, model.NumericPrediction):
      errors = np.abs(np.asarray(y, np.float64) - prediction.mean)
      scores: Any = metrics.selective_errors(uncertain, errors)
    else:
      right = metrics.is_correct(prediction.probs, y)
      scores = metrics.selective(uncertain, right)
    yield {'measure': measure, **scores._asdict()}


def calibration(
  prediction: model.AnyPrediction, y: np.ndarray, temperature: float = 1.0
) -> Row:
  """Returns scores of calibration, at a temperature.

  Args:
    temperature: Divisor of the log-probabilities; for numeric labels, factor on
      the standard deviation, in the column `scale_factor`.
  """
  if isinstance(prediction, model.NumericPrediction):
    scaled = prediction.evaluation(y)._replace(
      aleatoric=temperature**2 * prediction.aleatoric_uncertainty,
      epistemic=temperature**2 * prediction.epistemic_uncertainty,
    )
    scores = metrics.summarize(scaled).items()
    known = {name: score for name, score in scores if name in _OF_RUN}
    return {'scale_factor': temperature} | known
  probs = prediction.probs
  if temperature != 1:
    probs = metrics.tempered(probs, temperature)
  return {
    'temperature': temperature,
    'nll': metrics.negative_log_likelihood(probs, y),
    'ece': metrics.expected_calibration_error(probs, y),
    'adaptive_ece': metrics.adaptive_calibration_error(probs, y),
    'classwise_ece': metrics.classwise_calibration_error(probs, y),
    'overconfidence': metrics.overconfidence(probs, y),
  }


def temperature_data(run: loading.LoadedRun) -> tuple[str, data.Split] | None:
  """Returns the name of a set to fit a temperature on, and its examples.

  It is the first of these that exists: test examples held out for calibration,
  validation examples, calibration examples. Without any of them it is None.
  """
  split, validation = run.calibration, run.dataset.validation
  if split is not None and run.dataset.calibration is None:
    return 'the held-out test examples', split
  if len(validation.y):
    return 'the validation examples', validation
  return ('the calibration examples', split) if split else None


def fitted_temperature(
  trained: model.Trained, split: data.Split, num_samples: int | None = None
) -> float:
  """Returns the temperature, as `metrics.fit_temperature`.

  For numeric labels, it is the factor on the standard deviation.
  """
  prediction = trained.predict(split.x, num_samples)
  if isinstance(prediction, model.NumericPrediction):
    return prediction.evaluation(split.y).fitted_factor
  return metrics.fit_temperature(prediction.probs, split.y)


def corrupted(
  trained: model.Trained, test: data.Split, num_samples: int | None, seed: int
) -> Iterator[Row]:
  """Yields a row for clean images, and for each corruption and strength."""
  cells = itertools.product(corruptions.KINDS, corruptions.STRENGTHS)
  for kind, strength in (('none', 0), *cells):
    x = test.x
    if strength:
      x = corruptions.corrupt(x, kind, strength, seed)
    prediction = trained.predict(x, num_samples)
    given = prediction.probs, test.y
    yield {
      'kind': kind,
      'strength': strength,
      'accuracy': metrics.accuracy(*given),
      'nll': metrics.negative_log_likelihood(*given),
      'ece': metrics.expected_calibration_error(*given),
      'entropy': float(prediction.normalized_entropy.mean()),
      'epistemic': float(prediction.epistemic_uncertainty.mean()),
    }


def scores_by_name(tables: Mapping[str, Sequence[Row]]) -> dict[str, float]:
  """Returns all scores by name, for tables over runs."""
  scores: dict[str, float] = {}
  for row in tables.get('detection', ()):
    place = '_'.join(row[key] for key in ('distance', 'set', 'measure'))
    for name in metrics.Detection._fields:
      scores[f'{place}_{name}'] = row[name]
  for row in tables.get('selection', ()):
    for name in list(row)[1:]:
      scores[f'{name}_{row["measure"]}'] = row[name]
  for row, end in zip(tables.get('calibration', ()), ('', '_tempered')):
    for name in row:
      apart = '_untempered' if name in _OF_RUN and not end else end
      if end or name not in ('temperature', 'scale_factor'):
        scores[f'{name}{apart}'] = row[name]
  last, rows = corruptions.STRENGTHS[-1], tables.get('corruptions', ())
  worst = [row for row in rows if row['strength'] == last]
  for name in ('accuracy', 'nll', 'ece') if worst else ():
    scores[f'corrupted_{name}'] = float(np.mean([row[name] for row in worst]))
  return scores
