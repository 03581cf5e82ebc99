"""Tests of coefficients against other computations of the same posterior."""

import numpy as np
import pytest
from scipy import special
from sklearn import linear_model

from bfl_tf import analysis, data, runs
from bfl_tf.analysis import coefficients
from bfl_tf.config.config import Config
from bfl_tf.federation import run_data
from bfl_tf.runs import task

RNG = np.random.default_rng(0)
# Columns with different units, two of which are correlated.
X = (RNG.normal(size=(200, 3)) @ [[1, 0.8, 0], [0, 0.6, 0], [0, 0, 1]]) * [
  1, 20, 0.1,
] + [3, 100, 0]  # fmt: skip
SCALE = 2.0


def table(tmp_path, y, **changes):
  """Returns the coefficients of a run, and its normalization."""
  path = tmp_path / 'data.npz'
  np.savez(path, x=X.astype(np.float32), y=y)
  config = Config.of(
    {
      'dataset': str(path), 'num_workers': 1, 'num_clients': 1,
      'model': 'logistic', 'variant': 'deterministic', 'num_rounds': 1,
      'client_optimizer': 'laplace', 'laplace.covariance': 'full',
      'laplace.prior_scale': SCALE, 'pooling': 'product', 'batch_size': 200,
      'local_epochs': 1500, 'client_learning_rate': 0.1,
      'constant.step_decay': 0.996,
    }
    | changes
  )  # fmt: skip
  runs.Run(config, tmp_path / 'run', False, draw_plots=False).execute()
  trained = analysis.load(tmp_path / 'run')
  rows = coefficients.table(trained)
  whole = run_data.load(config)
  z = (whole.train.x - whole.mean) / whole.std
  units = np.diag(np.r_[1 / whole.std, 1.0])
  units[-1, :-1] = -whole.mean / whole.std
  (tmp_path / 'run' / 'sites').mkdir()
  assert coefficients.write(tmp_path / 'run', trained)
  return rows, np.c_[z, np.ones(len(z))], whole.train.y, units


def compared(rows, mean, covariance, units, tolerance=1e-3):
  """Compares rows with a posterior of standardized weights, intercept last."""
  order = [len(mean) - 1, *range(len(mean) - 1)]
  center = (units @ mean)[order]
  scale = np.sqrt(np.diag(units @ covariance @ units.T))[order]
  found = np.array([row['standard_deviation'] for row in rows])
  np.testing.assert_allclose(found, scale, rtol=tolerance)
  found = np.array([row['coefficient'] for row in rows])
  np.testing.assert_allclose((found - center) / scale, 0, atol=5 * tolerance)
  upper = np.array([row['upper'] for row in rows])
  np.testing.assert_allclose((upper - found) / scale, 1.96, rtol=2e-3)
  per_std = [row['per_std'] for row in rows[1:]]
  np.testing.assert_allclose(per_std, mean[:-1], atol=1e-2)


def test_two_classes_have_the_posterior_of_a_logistic_regression(tmp_path):
  logits = (X - X.mean(0)) / X.std(0) @ [1.0, -0.5, 0.8] - 0.5
  labels = (RNG.random(len(X)) < special.expit(logits)).astype(np.int64)
  rows, z, y, units = table(tmp_path, labels)
  # A difference of two weights has twice the variance of the prior.
  variance = 2 * SCALE**2
  model = linear_model.LogisticRegression(
    C=variance, fit_intercept=False, tol=1e-10
  )
  mode = model.fit(z, y).coef_[0]
  probs = special.expit(z @ mode)
  precision = (z.T * (probs * (1 - probs))) @ z + np.eye(4) / variance
  compared(rows, mode, np.linalg.inv(precision), units)
  odds = [row['odds_ratio'] for row in rows]
  assert odds == pytest.approx(np.exp([row['coefficient'] for row in rows]))


def test_numbers_have_the_posterior_of_a_linear_regression(tmp_path):
  labels = 5 + X @ [2.0, 0.1, -3.0] + RNG.normal(size=len(X))
  rows, z, y, units = table(
    tmp_path, labels.astype(np.float32),
    likelihood='gaussian', **{'gaussian.noise': 'known',
                              'gaussian.noise_scale': 1.0},
  )  # fmt: skip
  # The prior is on weights that are in units of the labels' deviation.
  unit = y.std()
  precision = z.T @ z + np.eye(4) / (SCALE * unit) ** 2
  mean = np.linalg.solve(precision, z.T @ (y - y.mean()))
  mean[-1] += y.mean()
  compared(rows, mean, np.linalg.inv(precision), units)
  assert 'odds_ratio' not in rows[0]


def test_classes_are_compared_with_the_first_and_others_have_no_table(tmp_path):
  y = np.arange(len(X)) % 3
  rows, *_ = table(tmp_path, y, local_epochs=5)
  assert [row['class'] for row in rows] == ['1'] * 4 + ['2'] * 4
  trained = analysis.load(tmp_path / 'run')
  kernel = trained.weights.loc[:9].reshape(3, 3)
  found = [row['per_std'] for row in rows if 'per_std' in row]
  np.testing.assert_allclose(
    found, (kernel[:, 1:] - kernel[:, :1]).T.ravel(), rtol=1e-4
  )


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
