"""Likelihoods: the distribution of a label, given the outputs of the network.

Everything that differs between classification and regression in training and
prediction is a method of these classes.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, ClassVar

import numpy as np

from bfl_tf import component, metrics
from bfl_tf.config.settings import Setting
from bfl_tf.startup import tf
from bfl_tf.training import prediction


class Likelihood(component.Component):
  """Distribution of a label, given the outputs of the network.

  Attributes:
    is_numeric: Whether labels are numbers, float32, instead of classes.
  """

  is_numeric: ClassVar[bool] = False

  def num_outputs(self, num_classes: int) -> int:
    """Returns the number of outputs of the network."""
    raise NotImplementedError('num_outputs(num_classes)')

  def num_constants(self) -> int:
    """Returns the number of trained outputs that do not depend on the input."""
    return 0

  def loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the negative log-likelihood `[batch]` in nats."""
    raise NotImplementedError('loss(outputs, labels)')

  def moments(self, outputs: Any) -> prediction.Moments:
    """Returns the moments of the label for one Monte Carlo sample."""
    raise NotImplementedError('moments(outputs)')

  def score(
    self, predictive: prediction.Predictive, labels: np.ndarray, num_bins: int
  ) -> dict[str, float]:
    """Returns the columns of `metrics.csv` for these predictions."""
    raise NotImplementedError('score(predictive, labels, num_bins)')


@dataclasses.dataclass(frozen=True)
class Categorical(Likelihood):
  """Classes whose probabilities are the softmax of the outputs."""

  def num_outputs(self, num_classes):
    return num_classes

  def loss(self, outputs, labels):
    # Labels of a distillation are probabilities `[batch, num_classes]`.
    if labels.dtype.is_floating:
      return tf.nn.softmax_cross_entropy_with_logits(labels, outputs)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)

  def moments(self, outputs):
    probs = tf.nn.softmax(outputs)
    return prediction.Moments(
      probs,
      tf.reduce_sum(probs * (1.0 - probs), -1),
      -tf.reduce_sum(tf.math.xlogy(probs, probs), -1),
    )

  def score(self, predictive, labels, num_bins):
    return metrics.summarize(
      metrics.Evaluation(
        predictive.probs,
        labels,
        predictive.aleatoric,
        predictive.epistemic,
        predictive.expected_entropy,
        num_bins,
      )
    )


NOISES = ('constant', 'input', 'known')
# softplus(0 + _UNIT) is 1.
_UNIT = math.log(math.e - 1.0)


@dataclasses.dataclass(frozen=True)
class Gaussian(Likelihood):
  """Numbers with Gaussian noise.

  The outputs are in units of `label_moments`, the mean and the standard
  deviation of the training labels. The standard deviation of the noise starts
  at that of the labels.
  """

  is_numeric: ClassVar[bool] = True

  label_moments: tuple[float, float]
  noise: Annotated[
    str,
    Setting(
      'Standard deviation of the noise: one trained constant, a trained '
      'function of the input, or known (noise_scale).',
      choices=NOISES,
    ),
  ] = 'constant'
  noise_scale: Annotated[
    float,
    Setting(
      'Known standard deviation of the noise, in the unit of the label; only '
      'for noise=known.',
      ge=0,
    ),
  ] = 0.0

  def __post_init__(self):
    if (self.noise == 'known') != (self.noise_scale > 0):
      raise ValueError(
        f'--gaussian.noise={self.noise} and --gaussian.noise_scale='
        f'{self.noise_scale:g} contradict each other: noise=known needs a '
        'positive noise_scale, and other values need none.'
      )

  def num_outputs(self, num_classes):
    return 2 if self.noise == 'input' else 1

  def num_constants(self):
    return 1 if self.noise == 'constant' else 0

  def loss(self, outputs, labels):
    mean, scale = self._mean_and_scale(outputs)
    distance = tf.square((labels - mean) / scale)
    return 0.5 * (distance + math.log(2 * math.pi)) + tf.math.log(scale)

  def moments(self, outputs):
    mean, scale = self._mean_and_scale(outputs)
    entropy = 0.5 * math.log(2 * math.pi * math.e) + tf.math.log(scale)
    return prediction.Moments(mean[:, tf.newaxis], tf.square(scale), entropy)

  def _mean_and_scale(self, outputs):
    center, unit = self.label_moments
    mean = center + unit * outputs[:, 0]
    if self.noise == 'known':
      return mean, tf.fill(tf.shape(mean), self.noise_scale)
    return mean, unit * tf.nn.softplus(outputs[:, 1] + _UNIT)

  def score(self, predictive, labels, num_bins):
    return metrics.summarize(
      metrics.NumericEvaluation(
        predictive.probs[:, 0],
        labels,
        predictive.aleatoric,
        predictive.epistemic,
        num_bins,
      )
    )


LIKELIHOODS: dict[str, Any] = {'categorical': Categorical, 'gaussian': Gaussian}
