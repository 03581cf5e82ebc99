"""Tests of coefficients against the outputs of the network."""

import numpy as np
import pytest
import toys

from bfl_tf import analysis, data
from bfl_tf.analysis import coefficients
from bfl_tf.config.config import Config
from bfl_tf.runs import task

# Moments of three columns, which the network standardizes.
MEAN, STD = (3.0, 100.0, 0.0), (1.0, 20.0, 0.1)


def effects(kernel_and_bias, num_outputs):
  """Returns the outputs at zeros, and the effect of a unit of each column."""
  x = np.vstack([np.zeros(3), np.eye(3)])
  kernel, bias = np.split(kernel_and_bias.reshape(4, num_outputs), [3])
  outputs = (x - MEAN) / STD @ kernel + bias
  outputs[1:] -= outputs[0]
  # Classes are compared with the first one.
  return outputs if num_outputs == 1 else outputs[:, 1:] - outputs[:, :1]


@pytest.mark.parametrize('num_classes', [0, 2, 3])
def test_coefficients_are_the_effects_of_the_columns(tmp_path, num_classes):
  rng, num_outputs = np.random.default_rng(0), num_classes or 1
  # For numbers, the last weight is the scale of the noise.
  size = 4 * num_outputs + (not num_classes)
  loc, scale = rng.normal(size=size), rng.uniform(0.1, 1, size)
  factor = rng.normal(0, 0.5, [2, size])
  kind, moments = 'categorical', (0.0, 1.0)
  if not num_classes:
    kind, moments = 'gaussian', (5.0, 2.0)
  trained = analysis.Trained(
    Config(model='logistic', likelihood=kind),
    task.Task((3,), 'float32', num_classes, MEAN, STD, label_moments=moments),
    toys.model(loc, scale, (), (), factor),
  )
  rows = coefficients.table(trained)
  # Coefficients are linear in the weights.
  linear = moments[1] * np.stack(
    [
      effects(one[: 4 * num_outputs], num_outputs).T.ravel()
      for one in np.eye(size)
    ],
    axis=1,
  )
  wanted = linear @ loc
  wanted[0] += moments[0]
  covariance = np.diag(scale**2) + factor.T @ factor
  deviation = np.sqrt(np.diag(linear @ covariance @ linear.T))
  found = np.array([row['coefficient'] for row in rows])
  np.testing.assert_allclose(found, wanted, rtol=1e-5)
  np.testing.assert_allclose(
    [row['standard_deviation'] for row in rows], deviation, rtol=1e-5
  )
  upper = [row['upper'] for row in rows]
  np.testing.assert_allclose(upper, found + 1.96 * deviation, rtol=1e-3)
  per_std = [row['per_std'] for row in rows if 'per_std' in row]
  expected = (wanted.reshape(-1, 4)[:, 1:] * STD).ravel()
  np.testing.assert_allclose(per_std, expected, rtol=1e-5)
  if num_classes:
    odds = [row['odds_ratio'] for row in rows]
    np.testing.assert_allclose(odds, np.exp(found))
  classes = {0: [None] * 4, 2: [None] * 4, 3: ['1'] * 4 + ['2'] * 4}
  assert [row.get('class') for row in rows] == classes[num_classes]
  (tmp_path / 'sites').mkdir()
  assert coefficients.write(tmp_path, trained)
  assert len(toys.table(tmp_path / 'sites' / 'coefficients.csv')) == len(rows)


def test_categories_are_compared_with_the_first_of_their_column():
  columns = ('age', None), ('age', ''), ('sex', 'f'), ('sex', 'm')
  found = coefficients.linear_map(
    task.Task(
      (4,), 'float32', 2, (50.0, 0.1, 0.5, 0.5), (10.0, 0.3, 0.5, 0.5),
      features=tuple(data.Feature(*c) for c in columns),
    )
  )  # fmt: skip
  rows = {k: v.round(6).tolist() for k, v in found.items()}
  assert rows == {
    'intercept': [-5, -0.333333, 1, -1, 1],
    'age': [0.1, 0, 0, 0, 0],
    'age is missing': [0, 3.333333, 0, 0, 0],
    'sex = m (f)': [0, 0, -2, 2, 0],
  }
