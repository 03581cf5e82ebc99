"""Likelihoods: the distribution of a label, given the outputs of the network.

Everything that differs between classification and regression in training,
prediction, ensembles and distillation is a method of these classes.
"""

import abc
from collections.abc import Mapping
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
from scipy import special

from bfl_tf import metrics
from bfl_tf.declare import component
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf
from bfl_tf.training.predictive import Moments, Predictive


class Likelihood(component.Component, abc.ABC):
  """Distribution of a label, given the outputs of the network.

  Attributes:
    is_numeric: Whether labels are numbers, float32, instead of classes.
    scores_of_groups: Scores of each group of models. The first one also decides
      when `fine_tune` stops.
  """

  is_numeric: ClassVar[bool] = False
  scores_of_groups: ClassVar[tuple[str, ...]] = ()

  @property
  def label_unit(self) -> float:
    """Unit of predictions and of distilled labels, relative to the labels'."""
    return 1.0

  def in_label_unit(self, predictive: Predictive) -> Predictive:
    """Returns predictions in the unit of the labels, with float64 variances.

    They are unchanged if `label_unit` is 1.
    """
    unit = self.label_unit
    if unit == 1:
      return predictive
    return predictive._replace(
      mean=predictive.mean * unit,
      aleatoric=predictive.aleatoric * np.float64(unit**2),
      epistemic=predictive.epistemic * np.float64(unit**2),
    )

  @abc.abstractmethod
  def num_outputs(self, num_classes: int) -> int:
    """Returns the number of outputs of the network."""

  def num_constants(self) -> int:
    """Returns the number of trained outputs that do not depend on the input."""
    return 0

  @abc.abstractmethod
  def loss(self, outputs: Any, labels: Any) -> Any:
    """Returns the negative log-likelihood `[batch]` in nats.

    Labels of a distillation are the float32 arrays of `targets`. Their loss is
    the cross entropy of the student relative to the teacher.
    """

  @abc.abstractmethod
  def sample(self, outputs: Any, seed: Any) -> Any:
    """Returns labels `[batch]` that are sampled from the prediction."""

  @abc.abstractmethod
  def fisher(self, outputs: Any) -> Any:
    """Returns the Fisher information of a label about the outputs.

    It is `[batch, num_outputs, num_outputs]`, with the constant outputs.
    """

  @abc.abstractmethod
  def moments(self, outputs: Any) -> Moments:
    """Returns the moments of the label for one Monte Carlo sample."""

  @abc.abstractmethod
  def evaluation(
    self, predictive: Predictive, labels: np.ndarray, num_bins: int = 15
  ) -> metrics.Evaluation | metrics.NumericEvaluation:
    """Returns predictions with their labels, from which scores follow."""

  @abc.abstractmethod
  def natural(self, predictive: Predictive) -> np.ndarray:
    """Returns float64 natural parameters of the predictive distributions.

    There is one row per example. A sum of natural parameters belongs to the
    normalized product of the distributions.
    """

  @abc.abstractmethod
  def of_natural(self, natural: np.ndarray) -> Predictive:
    """Returns float64 predictions with these natural parameters.

    They have no epistemic part, because a product has no members.
    """

  @abc.abstractmethod
  def log_prob(self, natural: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Returns log-densities `[num_examples]` of labels, in nats."""

  @abc.abstractmethod
  def targets(self, predictive: Predictive, exponent: float) -> np.ndarray:
    """Returns float32 labels of a distillation, one row per example."""

  @abc.abstractmethod
  def certain_targets(self, labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns the `targets` of a teacher that knows the labels."""

  @abc.abstractmethod
  def member_arrays(
    self, predictive: Predictive, labels: np.ndarray
  ) -> dict[str, np.ndarray]:
    """Returns arrays `[num_examples]` of one model of a group, by name.

    They are the arrays of `members.npz`. The predictions may not be finite.
    """

  @abc.abstractmethod
  def member_scores(
    self, arrays: Mapping[str, np.ndarray], num_bins: int
  ) -> dict[str, float]:
    """Returns scores of the models of a group.

    Args:
      arrays: Results of `member_arrays`, `[num_members, num_examples]`.
    """


@dataclasses.dataclass(frozen=True)
class Categorical(Likelihood):
  """Classes whose probabilities are the softmax of the outputs."""

  scores_of_groups: ClassVar[tuple[str, ...]] = ('accuracy', 'nll', 'ece')

  def num_outputs(self, num_classes):
    return num_classes

  def loss(self, outputs, labels):
    if labels.dtype.is_floating:
      return tf.nn.softmax_cross_entropy_with_logits(labels, outputs)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)

  def sample(self, outputs, seed):
    # For outputs that are NaN, TensorFlow returns a class out of range.
    sampled = tf.random.stateless_categorical(outputs, 1, seed)[:, 0]
    return tf.minimum(sampled, tf.shape(outputs, tf.int64)[1] - 1)

  def fisher(self, outputs):
    probs = tf.nn.softmax(outputs)
    both = probs[:, :, tf.newaxis] * probs[:, tf.newaxis]
    return tf.linalg.diag(probs) - both

  def moments(self, outputs):
    probs = tf.nn.softmax(outputs)
    return Moments(
      probs,
      tf.reduce_sum(probs * (1.0 - probs), -1),
      -tf.reduce_sum(tf.math.xlogy(probs, probs), -1),
    )

  def evaluation(self, predictive, labels, num_bins=15):
    return metrics.Evaluation(
      predictive.mean,
      labels,
      predictive.aleatoric,
      predictive.epistemic,
      predictive.expected_entropy,
      num_bins,
    )

  def natural(self, predictive):
    probs = predictive.mean.astype(np.float64)
    return np.log(np.maximum(probs, metrics.MIN_PROBABILITY))

  def of_natural(self, natural):
    log_probs = special.log_softmax(natural, axis=-1)
    probs = np.exp(log_probs)
    return Predictive(
      probs,
      (probs * (1 - probs)).sum(-1),
      np.zeros(len(probs)),
      -(probs * log_probs).sum(-1),
    )

  def log_prob(self, natural, labels):
    return special.log_softmax(natural, axis=-1)[np.arange(len(labels)), labels]

  def targets(self, predictive, exponent):
    # Division by the maximum prevents rows that underflow to zeros.
    probs = predictive.mean
    powers = (probs / probs.max(-1, keepdims=True)) ** exponent
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)

  def certain_targets(self, labels, num_classes):
    return np.eye(num_classes, dtype=np.float32)[labels]

  def member_arrays(self, predictive, labels):
    probs = predictive.mean
    if np.all(np.isfinite(probs)):
      confidence, classes = probs.max(-1), probs.argmax(-1)
    else:
      # A diverged model counts as confident and wrong.
      confidence = np.ones(len(labels), np.float32)
      classes = np.full(len(labels), -1)
    return {
      'confidence': confidence,
      'classes': classes,
      'correct': classes == labels,
    }

  def member_scores(self, arrays, num_bins):
    correct, classes = arrays['correct'], arrays['classes']
    errors = [
      metrics.reliability_of(each, right, num_bins).expected_calibration_error
      for each, right in zip(arrays['confidence'], correct)
    ]
    scores = {
      'best_accuracy': float(correct.mean(-1).max()),
      'mean_ece': float(np.mean(errors)),
    }
    finite = classes[(classes >= 0).all(-1)]
    if len(finite) > 1:
      scores['hypothesis_conflict'] = metrics.hypothesis_conflict(finite)
    return scores


NOISES = ('constant', 'input', 'known')
# Variances are representable in float32 if the labels' standard deviation is
# between 2^-_WIDE and 2^_WIDE.
_WIDE = 30
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
  scores_of_groups: ClassVar[tuple[str, ...]] = ('rmse', 'nll', 'crps')

  label_moments: tuple[float, float]
  noise: str = setting(
    'constant',
    'Standard deviation of the noise: one trained constant, a trained '
    'function of the input, or known (noise_scale).',
    choices=NOISES,
  )
  noise_scale: float = setting(
    0.0,
    'Known standard deviation of the noise, in the unit of the label; only '
    'for noise=known.',
    ge=0,
  )

  def __post_init__(self):
    if (self.noise == 'known') != (self.noise_scale > 0):
      raise ValueError(
        f'--gaussian.noise={self.noise} and --gaussian.noise_scale='
        f'{self.noise_scale:g} contradict each other: noise=known needs a '
        'positive noise_scale, and other values need none.'
      )

  @property
  def label_unit(self):
    # A power of two changes no digit of a float.
    exponent = round(math.log2(self.label_moments[1]))
    return 2.0**exponent if abs(exponent) > _WIDE else 1.0

  def num_outputs(self, num_classes):
    return 2 if self.noise == 'input' else 1

  def num_constants(self):
    return 1 if self.noise == 'constant' else 0

  def loss(self, outputs, labels):
    mean, scale = self._mean_and_scale(outputs)
    # Labels of a distillation are means and variances, `[batch, 2]`.
    spread = 0.0
    if len(labels.shape) == 2:
      labels, variance = tf.unstack(labels, axis=1)
      labels *= self.label_unit
      spread = variance / tf.square(scale / self.label_unit)
    distance = tf.square((labels - mean) / scale) + spread
    return 0.5 * (distance + math.log(2 * math.pi)) + tf.math.log(scale)

  def sample(self, outputs, seed):
    mean, scale = self._mean_and_scale(outputs)
    return mean + scale * tf.random.stateless_normal(tf.shape(mean), seed)

  def fisher(self, outputs):
    unit, (_, scale) = self.label_moments[1], self._mean_and_scale(outputs)
    diagonal = [tf.square(unit / scale)]
    if self.noise != 'known':
      slope = unit * tf.nn.sigmoid(outputs[:, 1] + _UNIT)
      diagonal.append(2.0 * tf.square(slope / scale))
    return tf.linalg.diag(tf.stack(diagonal, 1))

  def moments(self, outputs):
    mean, scale = self._mean_and_scale(outputs)
    entropy = 0.5 * math.log(2 * math.pi * math.e) + tf.math.log(scale)
    mean, scale = mean / self.label_unit, scale / self.label_unit
    return Moments(mean[:, tf.newaxis], tf.square(scale), entropy)

  def _mean_and_scale(self, outputs):
    center, unit = self.label_moments
    mean = center + unit * outputs[:, 0]
    if self.noise == 'known':
      return mean, tf.fill(tf.shape(mean), self.noise_scale)
    return mean, unit * tf.nn.softplus(outputs[:, 1] + _UNIT)

  def evaluation(self, predictive, labels, num_bins=15):
    predictive = self.in_label_unit(predictive)
    return metrics.NumericEvaluation(
      predictive.mean[:, 0],
      labels,
      predictive.aleatoric,
      predictive.epistemic,
      num_bins,
    )

  def natural(self, predictive):
    variance = predictive.aleatoric.astype(np.float64) + predictive.epistemic
    return (
      np.stack([predictive.mean[:, 0], np.ones_like(variance)], 1)
      / (variance[:, np.newaxis])
    )

  def of_natural(self, natural):
    variance = 1 / natural[:, 1]
    return Predictive(
      (natural[:, 0] * variance)[:, np.newaxis],
      variance,
      np.zeros_like(variance),
      0.5 * np.log(2 * math.pi * math.e * variance) + math.log(self.label_unit),
    )

  def log_prob(self, natural, labels):
    shift, precision = natural.T
    labels = labels / self.label_unit
    distance = precision * np.square(labels - shift / precision)
    density = 0.5 * (np.log(precision / (2 * math.pi)) - distance)
    return density - math.log(self.label_unit)

  def targets(self, predictive, exponent):
    # A power of a Gaussian has the same mean and a smaller variance.
    variance = (predictive.aleatoric + predictive.epistemic) / exponent
    return np.stack([predictive.mean[:, 0], variance], 1).astype(np.float32)

  def certain_targets(self, labels, num_classes):
    return np.stack([labels / self.label_unit, np.zeros_like(labels)], 1)

  def member_arrays(self, predictive, labels):
    unit, mean = self.label_unit, predictive.mean[:, 0]
    error = np.square(mean - labels / unit) * np.float64(unit**2)
    return {'mean': mean * unit, 'squared_error': error}

  def member_scores(self, arrays, num_bins):
    errors = arrays['squared_error'].mean(-1, dtype=np.float64)
    # A diverged model is never the best.
    return {'best_rmse': float(np.nanmin([*errors, np.inf]) ** 0.5)}


LIKELIHOODS: dict[str, Any] = {'categorical': Categorical, 'gaussian': Gaussian}
