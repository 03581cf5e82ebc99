"""Scores of numeric predictions.

The predictive distribution of an example is the Gaussian with the mean and the
variance (aleatoric plus epistemic) of the mixture over Monte Carlo samples. It
is exact for a linear model with known noise.

References:
  T. Gneiting, A. Raftery. Strictly proper scoring rules, prediction, and
  estimation. JASA 2007. The CRPS of a Gaussian is its Eq. 21.
"""

from typing import NamedTuple

import numpy as np
from scipy import special, stats


class NumericEvaluation(NamedTuple):
  """Numeric predictions from which scores are computed.

  Attributes:
    aleatoric: `[num_examples]`, variance of the noise.
    epistemic: `[num_examples]`, variance of the mean over samples.
  """

  mean: np.ndarray
  labels: np.ndarray
  aleatoric: np.ndarray
  epistemic: np.ndarray
  num_bins: int = 15

  @property
  def scale(self) -> np.ndarray:
    """Predictive standard deviation of each example."""
    aleatoric = np.asarray(self.aleatoric, np.float64)
    return np.sqrt(aleatoric + self.epistemic)

  @property
  def residual(self) -> np.ndarray:
    """Label minus predictive mean, in standard deviations."""
    labels = np.asarray(self.labels, np.float64)
    return (labels - self.mean) / self.scale

  @property
  def fitted_factor(self) -> float:
    """Factor on the standard deviations that minimizes the NLL."""
    return float(np.sqrt(np.mean(np.square(self.residual))))


def half_width(level: float) -> float:
  """Returns the half width of a central interval, in standard deviations."""
  return float(stats.norm.ppf(0.5 + level / 2))


def rmse(given: NumericEvaluation) -> float:
  """Root mean squared error, in the unit of the label."""
  error = np.asarray(given.labels, np.float64) - given.mean
  return float(np.sqrt(np.mean(np.square(error))))


def gaussian_nll(given: NumericEvaluation) -> float:
  """Negative log-density of the labels, in nats per example."""
  nll = 0.5 * np.square(given.residual) + np.log(given.scale)
  return float(np.mean(nll) + 0.5 * np.log(2 * np.pi))


def crps(given: NumericEvaluation) -> float:
  """Continuous ranked probability score, in the unit of the label."""
  z = given.residual
  density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
  each = z * (2 * special.ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)
  return float(np.mean(given.scale * each))


def coverage(given: NumericEvaluation, level: float) -> float:
  """Fraction of the labels inside the central interval of a level."""
  return float(np.mean(np.abs(given.residual) <= half_width(level)))


def width(given: NumericEvaluation, level: float) -> float:
  """Mean width of the central interval of a level, in the label's unit."""
  return float(2 * half_width(level) * np.mean(given.scale))


def pit(given: NumericEvaluation) -> np.ndarray:
  """Probability integral transform `[num_examples]`: P(prediction <= label).

  Its distribution is uniform if the predictions are calibrated.
  """
  return special.ndtr(given.residual)


def pit_error(given: NumericEvaluation) -> float:
  """Mean distance of the PIT's distribution function from the uniform one.

  Both functions are compared at the inner edges of `num_bins` equal bins.
  """
  edges = np.linspace(0, 1, given.num_bins + 1)[1:-1]
  below = np.mean(pit(given)[:, np.newaxis] <= edges, axis=0)
  return float(np.mean(np.abs(below - edges)))
