"""Coefficients of a logistic or linear model, with their uncertainty.

Notation: z = (x - mean) / std are the standardized features, which the model is
trained on, and w = [kernel; bias] its weights with the posterior N(m, S).
  coefficient of a feature = k / std, per unit of the column
  coefficient of a category = the difference from the first category
  intercept = bias - sum k mean / std, at x = 0 and the first categories
All are linear in w, c = L w, so that c has the posterior N(L m, L S L^T). For
classes, the effects are log odds relative to the first class, which are
differences of columns of the kernel: adding a constant to all of its columns
changes no prediction. For numbers, they are in the unit of the label.

S is the posterior as trained, without the factor that predictions use.
"""

from collections.abc import Iterator, Sequence
import pathlib
from typing import Any

import numpy as np

from bfl_tf import data, metrics, run_files
from bfl_tf.analysis import model
from bfl_tf.runs import tables
from bfl_tf.runs import task as task_lib

_LEVEL = 0.95
# Largest number of printed rows.
_PRINTED = 30


def table(trained: model.Trained) -> list[dict[str, Any]]:
  """Returns one row per coefficient; none for another kind of model.

  The model is `--model=logistic` on a table or vectors, with a posterior.
  Columns: `class` with three or more classes; `feature`; `coefficient` with
  `standard_deviation` and the 95 % interval `lower` to `upper`; for classes
  `odds_ratio`, the exponential of the coefficient, with its interval; and
  `per_std`, the coefficient per standard deviation of the feature.
  """
  task, config = trained.task, trained.config
  is_linear = config.model == 'logistic' and len(task.input_shape) == 1
  if not is_linear or isinstance(trained, model.Ensemble) or trained.needs_site:
    return []
  if not trained.weights.loc.size:
    return []
  to_units = linear_map(task)
  linear = np.stack([*to_units.values()])
  numbers = zip(_features(task), task.std)
  std = {f.column: s for f, s in numbers if f.value is None}
  rows = []
  for name, effect, offset in _effects(trained):
    loc, scale = _moments(trained.weights, np.kron(linear, effect))
    loc[0] += offset
    half = metrics.half_width(_LEVEL) * scale
    ends = np.stack([loc, loc - half, loc + half])
    with np.errstate(over='ignore'):
      odds = np.exp(ends)
    for at, feature in enumerate(to_units):
      row: dict[str, Any] = {'class': name} if name else {}
      row |= {'feature': feature, 'coefficient': loc[at]}
      row['standard_deviation'] = scale[at]
      row |= dict(zip(('lower', 'upper'), ends[1:, at]))
      if not task.is_numeric:
        row |= dict(
          zip(('odds_ratio', 'odds_lower', 'odds_upper'), odds[:, at])
        )
      if std.get(feature):
        row['per_std'] = loc[at] * std[feature]
      rows.append(row)
  return rows


def linear_map(task: task_lib.Task) -> dict[str, np.ndarray]:
  """Returns factors `[num_features + 1]` of [kernel; bias], by coefficient."""
  std = np.array(task.std, float)
  per_unit = np.pad(np.diag(1 / std), ((0, 0), (0, 1)))
  intercept = np.r_[-np.array(task.mean) / std, 1.0]
  rows = {'intercept': intercept}
  features = _features(task)
  # The first category of each column.
  references: dict[str, int] = {}
  for at, feature in enumerate(features):
    if feature.value:
      references.setdefault(feature.column, at)
  for at, (column, value) in enumerate(features):
    reference = references.get(column)
    if at == reference:
      intercept += per_unit[at]
    elif reference is None:
      rows[column if value is None else f'{column} is missing'] = per_unit[at]
    else:
      first = features[reference].value
      name = f'{column} = {value or "missing"} ({first})'
      rows[name] = per_unit[at] - per_unit[reference]
  return rows


def _features(task) -> Sequence[data.Feature]:
  """Returns the features of a table, or numbered ones."""
  numbered = (data.Feature(f'feature {at}') for at in range(len(task.mean)))
  return task.features or [*numbered]


def write(path: pathlib.Path, trained: model.Trained) -> list[str]:
  """Writes `sites/coefficients.csv` of a run, and returns lines to print.

  The lines have the coefficients that are farthest from 0, in the unit of their
  standard deviations.
  """
  rows = table(trained)
  if not rows:
    return []
  tables.write_csv(path / run_files.SITES / 'coefficients.csv', rows)
  shown = sorted(
    rows, key=lambda row: -abs(row['coefficient']) / row['standard_deviation']
  )[:_PRINTED]
  what = 'change of the prediction'
  if not trained.task.is_numeric:
    what = f'log odds relative to {trained.task.classes[0]}'
  some = f', {_PRINTED} of {len(rows)}' if len(rows) > _PRINTED else ''
  return [
    *tables.table([row for row in rows if row in shown]).splitlines(),
    f'coefficients: {what} per unit of the column, with 95 % intervals of the '
    f'posterior (coefficients.csv{some})',
    '',
  ]


def _effects(trained) -> Iterator[tuple[str, np.ndarray, float]]:
  """Yields name, factors of the outputs, and offset of each effect."""
  task = trained.task
  outputs = np.eye(trained.likelihood.num_outputs(task.num_classes))
  if task.is_numeric:
    offset, unit = task.label_moments
    yield '', unit * outputs[:1], offset
    return
  names = task.classes if task.num_classes > 2 else ('', '')
  for name, output in zip(names[1:], outputs[1:]):
    yield name, (output - outputs[0])[np.newaxis], 0.0


def _moments(weights, linear) -> tuple[np.ndarray, np.ndarray]:
  """Returns mean and standard deviation of `linear @ w`, float64."""
  # Constants, such as the scale of the noise, follow kernel and bias.
  linear = np.pad(linear, ((0, 0), (0, weights.mean.size - linear.shape[1])))
  of_loc = linear[:, : weights.loc.size]
  variance = np.square(of_loc) @ np.square(weights.scale, dtype=float)
  variance += np.square(of_loc @ weights.factor.T.astype(float)).sum(1)
  return linear @ weights.mean.astype(float), np.sqrt(variance)
